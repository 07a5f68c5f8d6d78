/* Elements without markup: text is always a text node, so nothing that a pod's metadata contains is ever parsed. */

export function h(tag, attributes, ...children) {
	const element = document.createElement(tag);
	set(element, attributes || {});
	element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
	return element;
}

export function set(element, attributes) {
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith('on'))
			element.addEventListener(name.slice(2), value);
		else if (value === true)
			element.setAttribute(name, '');
		else if (value === false || value === null || value === undefined)
			element.removeAttribute(name);
		else
			element.setAttribute(name, String(value));
	}
	return element;
}

/* Only touches the document when the text differs: thousands of tiles are updated in place. */
export function text(element, value) {
	if (element.textContent !== value)
		element.textContent = value;
}

/* On a narrow screen each row is a list of its cells with their heads (style.css). The roles say that it is a table nevertheless. */
export function table(caption, heads, rows, empty) {
	if (!rows.length)
		return h('p', {class: 'dim'}, empty);
	for (const row of rows)
		heads.forEach((head, i) => set(row.cells[i], {'data-head': head}));
	return h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
		h('table', {role: 'table'},
			h('caption', {class: 'hidden'}, caption),
			h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, heads.map((head) => h('th', {role: 'columnheader', scope: 'col'}, head)))),
			h('tbody', {role: 'rowgroup'}, rows)));
}

export function row(cells, attributes) {
	return h('tr', Object.assign({role: 'row'}, attributes), cells.map((cell) => h('td', {role: 'cell'}, cell)));
}

export function badge(kind, label) {
	return h('span', {class: 'badge ' + kind}, label);
}

export function plural(n, one, many) {
	return n.toLocaleString('en') + ' ' + (n === 1 ? one : many || one + 's');
}

export function clock(ms) {
	return new Date(ms).toLocaleTimeString('en-GB');
}

export function path(...parts) {
	return '#/' + parts.map(encodeURIComponent).join('/');
}
