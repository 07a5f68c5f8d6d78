/* The CPUs of one node: sockets, NUMA nodes, caches, cores and threads. Colours show the pools; each CPU has a
 * letter as well, as in `pinfold map`, so that nothing depends on colours alone. */

import {h, set} from './dom.js';
import {parse, byCpu} from './cpus.js';

const letters = {management: 'm', shared: 's', guaranteed: 'g', none: '-'};

/* What each CPU is: its pool, the owner of it, and all containers that may run there. */
export function describe(node, lists, pods) {
	const pool = byCpu(lists), cpus = new Map(), sets = {};
	for (const name of ['management', 'shared', 'guaranteed'])
		sets[name] = parse(lists[name]);
	const at = (cpu) => {
		if (!cpus.has(cpu))
			cpus.set(cpu, {cpu, pool: pool.get(cpu) || 'none', owner: null, containers: []});
		return cpus.get(cpu);
	};
	for (const group of node.groups || [])
		for (const core of group.cores)
			parse(core).forEach(at);
	for (const pod of pods)
		for (const container of pod.containers) {
			const list = container.cpus ? parse(container.cpus) : container.exclusive ? [] : sets[container.pool];
			for (const cpu of list) {
				const entry = at(cpu);
				entry.containers.push({pod, container});
				if (container.exclusive)
					entry.owner = {pod, container};
			}
		}
	return cpus;
}

function nameOf(entry) {
	return entry.pod.namespace + '/' + entry.pod.name + ', container ' + entry.container.name;
}

export function settings(container) {
	const parts = [];
	if (container.millicores > 0)
		parts.push('requests ' + container.millicores + 'm');
	if (container.shares !== undefined)
		parts.push('weight ' + container.shares + ' shares');
	if (container.quotaUs !== undefined)
		parts.push(container.quotaUs ? 'quota ' + container.quotaUs + ' µs of ' + container.periodUs + ' µs' : 'no quota');
	return parts.join(', ');
}

export function label(entry, use) {
	const parts = ['CPU ' + entry.cpu];
	parts.push(entry.pool === 'none' ? 'in no pool' : entry.pool + ' pool');
	if (entry.owner)
		parts.push('owned by ' + nameOf(entry.owner));
	else if (entry.pool === 'guaranteed')
		parts.push('free');
	else
		parts.push(entry.containers.length + (entry.containers.length === 1 ? ' container' : ' containers'));
	if (use !== undefined)
		parts.push(use + ' % busy');
	return parts.join(', ');
}

export class CpuMap {
	/* onSelect gets the entry of the CPU that is focused or under the pointer, onOpen that of one that is clicked. */
	constructor(title, onSelect, onOpen) {
		this.onSelect = onSelect;
		this.onOpen = onOpen;
		this.cells = new Map();
		this.entries = new Map();
		this.use = {};
		this.element = h('div', {class: 'map', role: 'group', 'aria-label': title,
			onkeydown: (event) => this.onKey(event)});
		this.shape = '';
	}

	cell(cpu) {
		const cell = h('button', {type: 'button', class: 'cpu', tabindex: '-1',
			onfocus: () => this.onSelect(this.entries.get(cpu)),
			onmouseenter: () => this.onSelect(this.entries.get(cpu)),
			onclick: () => this.onOpen(this.entries.get(cpu))},
		h('span', {class: 'busy', 'aria-hidden': 'true'}), h('span', {class: 'number', 'aria-hidden': 'true'}, String(cpu)),
		h('span', {class: 'letter', 'aria-hidden': 'true'}));
		this.cells.set(cpu, cell);
		return cell;
	}

	/* Elements are made once for a machine and then only changed. */
	build(groups, coresKnown) {
		const shape = JSON.stringify(groups);
		if (shape === this.shape)
			return;
		this.shape = shape;
		this.cells.clear();
		const sockets = new Map();
		for (const group of groups) {
			if (!sockets.has(group.socket))
				sockets.set(group.socket, new Map());
			const numa = sockets.get(group.socket);
			if (!numa.has(group.numa))
				numa.set(group.numa, []);
			numa.get(group.numa).push(group);
		}
		this.element.replaceChildren(...[...sockets].map(([socket, numa]) =>
			h('div', {class: 'socket', role: 'group', 'aria-label': 'socket ' + socket},
				numa.size > 1 && (sockets.size > 1 || coresKnown) ? h('span', {class: 'of'}, 'socket ' + socket) : null,
				[...numa].map(([id, list]) => h('div', {class: 'numa', role: 'group', 'aria-label': 'NUMA node ' + id},
					h('span', {class: 'of'}, (numa.size > 1 || !coresKnown ? '' : 'socket ' + socket + ', ') + 'NUMA node ' + id),
					list.map((group) => h('div', {class: 'cache'},
						coresKnown ? h('span', {class: 'of'}, 'L3 ' + group.cache) : null,
						h('div', {class: 'cores'}, group.cores.map((core) =>
							h('div', {class: coresKnown ? 'core' : 'core lone'}, parse(core).map((cpu) => this.cell(cpu))))))))))));
		const first = this.cells.values().next().value;
		if (first)
			first.tabIndex = 0;
	}

	/* `marked` is the pod whose CPUs are emphasised; `changed` a set of CPUs whose pool differs. */
	update(node, entries, marked, changed) {
		this.build(node.groups || [], node.coresKnown);
		this.entries = entries;
		for (const [cpu, cell] of this.cells) {
			const entry = entries.get(cpu) || {cpu, pool: 'none', owner: null, containers: []};
			const is = marked && entry.containers.some(({pod}) => pod.namespace === marked.namespace && pod.name === marked.name);
			const letter = entry.owner ? 'G' : letters[entry.pool];
			const name = 'cpu ' + entry.pool + (entry.owner ? ' owned' : '') + (is ? ' marked' : '') +
				(changed && changed.has(cpu) ? ' changed' : '');
			if (cell.className !== name)
				cell.className = name;
			if (cell.lastChild.textContent !== letter)
				cell.lastChild.textContent = letter;
			this.describeCell(cpu, cell, entry);
		}
	}

	describeCell(cpu, cell, entry) {
		const text = label(entry, this.use[cpu]);
		if (cell.getAttribute('aria-label') !== text)
			set(cell, {'aria-label': text});
	}

	setUse(use) {
		this.use = use || {};
		for (const [cpu, cell] of this.cells) {
			cell.firstChild.style.height = (this.use[cpu] || 0) + '%';
			this.describeCell(cpu, cell, this.entries.get(cpu));
		}
	}

	/* One CPU is in the order of Tab; arrow keys go to the others. */
	onKey(event) {
		const cells = [...this.cells.values()], at = cells.indexOf(document.activeElement);
		const box = at >= 0 && cells[at].getBoundingClientRect();
		let to = -1;
		if (at < 0)
			return;
		if (event.key === 'ArrowRight')
			to = at + 1;
		else if (event.key === 'ArrowLeft')
			to = at - 1;
		else if (event.key === 'Home')
			to = 0;
		else if (event.key === 'End')
			to = cells.length - 1;
		else if (event.key === 'ArrowDown' || event.key === 'ArrowUp')
			to = this.vertical(cells, box, event.key === 'ArrowDown');
		else
			return;
		event.preventDefault();
		if (to < 0 || to >= cells.length)
			return;
		cells[at].tabIndex = -1;
		cells[to].tabIndex = 0;
		cells[to].focus();
	}

	/* The nearest CPU in the next row. */
	vertical(cells, box, down) {
		let best = -1, distance = Infinity;
		cells.forEach((cell, i) => {
			const other = cell.getBoundingClientRect();
			const rows = down ? other.top - box.top : box.top - other.top;
			if (rows < box.height / 2)
				return;
			const d = rows * 1000 + Math.abs(other.left - box.left);
			if (d < distance) {
				distance = d;
				best = i;
			}
		});
		return best;
	}
}

export function legend(measured) {
	const item = (name, letter, words) => h('li', {}, h('span', {class: 'cpu sample ' + name, 'aria-hidden': 'true'},
		h('span', {class: 'letter'}, letter)), ' ' + words);
	return h('ul', {class: 'legend'}, item('management', 'm', 'management'), item('shared', 's', 'shared'),
		item('guaranteed owned', 'G', 'guaranteed, owned by one container'), item('guaranteed', 'g', 'guaranteed, free'),
		measured ? h('li', {}, 'The filled part of a CPU is how busy it is.') : null);
}
