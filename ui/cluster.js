/* All nodes as tiles. Only the tiles in view exist: thousands of nodes stay fluid. */

import {h, set, text, badge, plural, path} from './dom.js';
import {count} from './cpus.js';
import {state, listen} from './data.js';

const GAP = 12, MIN_WIDTH = 250, HEIGHT = 138, MARGIN_ROWS = 2;

/* Notes are findings of a profile that only wants reports. */
const problems = (node) => node.findings.filter((finding) => !finding.note).length;

const waits = (node, what) => (node.pending || []).some((change) => change.what === what);

const filters = {
	all: ['All nodes', () => true],
	findings: ['With findings', (node) => problems(node) > 0],
	reboot: ['Waiting for a reboot', (node) => waits(node, 'Reboot')],
	restart: ['Waiting for a restart', (node) => waits(node, 'KubeletRestart') || waits(node, 'RuntimeRestart')],
	notready: ['Not ready', (node) => !node.ready],
	full: ['No free guaranteed CPU', (node) => node.guaranteed && free(node) === 0],
};

const free = (node) => ((node.use || {}).guaranteed || {}).free || 0;
const owned = (node) => count(((node.use || {}).guaranteed || {}).exclusive);

const orders = {
	name: ['Name', (a, b) => a.name.localeCompare(b.name, 'en', {numeric: true})],
	findings: ['Most findings', (a, b) => problems(b) - problems(a)],
	free: ['Most free CPUs', (a, b) => free(b) - free(a)],
	pods: ['Most pods', (a, b) => b.pods - a.pods],
};

const parts = [['management', 'management CPUs'], ['shared', 'shared'], ['owned', 'guaranteed, owned'], ['guaranteed', 'guaranteed, free']];

class Tile {
	constructor() {
		this.name = h('span', {class: 'name'});
		this.profile = h('span', {class: 'dim'});
		this.segments = parts.map(([name]) => h('span', {class: 'seg ' + name}));
		this.sizes = h('span', {class: 'hidden'}); /* what the bar shows */
		this.facts = h('span', {class: 'facts'});
		this.badges = h('span', {class: 'badges'});
		this.link = h('a', {class: 'tile'}, this.name, this.profile,
			h('span', {class: 'bar', 'aria-hidden': 'true'}, this.segments), this.sizes, this.facts, this.badges);
		this.element = h('li', {class: 'slot'}, this.link);
		this.shown = '';
	}

	place(x, y, width) {
		this.element.style.transform = 'translate(' + x + 'px,' + y + 'px)';
		this.element.style.width = width + 'px';
	}

	show(node, position, size) {
		set(this.element, {'aria-posinset': position, 'aria-setsize': size});
		const key = node.name + '@' + node.revision;
		if (key === this.shown)
			return;
		this.shown = key;
		const sizes = [count(node.management), count(node.shared), owned(node), free(node)];
		set(this.link, {href: path('node', node.name), class: 'tile' + (problems(node) ? ' bad' : '')});
		text(this.name, node.name);
		text(this.profile, node.profile ? 'profile ' + node.profile : node.source && node.source !== 'None' ? 'pools from ' + node.source : 'no profile');
		this.segments.forEach((segment, i) => {
			segment.style.flexGrow = sizes[i];
			segment.hidden = !sizes[i];
			text(segment, String(sizes[i] || ''));
		});
		text(this.sizes, sizes[0] + ' management, ' + sizes[1] + ' shared, ');
		text(this.facts, sizes[3] + ' of ' + (sizes[2] + sizes[3]) + ' guaranteed CPUs free · ' + plural(node.pods, 'pod'));
		this.badges.replaceChildren(...badgesOf(node));
	}
}

function badgesOf(node) {
	const list = [];
	if (!node.ready)
		list.push(badge('error', 'not ready'));
	for (const change of node.pending || [])
		list.push(badge('warn', waitText[change.what] || change.what));
	if (problems(node))
		list.push(badge('error', plural(problems(node), 'finding')));
	if (!list.length)
		list.push(badge('ok', 'as configured'));
	return list;
}

export const waitText = {Reboot: 'waits for a reboot', KubeletRestart: 'waits for a kubelet restart',
	RuntimeRestart: 'waits for a runtime restart', Resize: 'waits for a resize'};

function choice(name, options, value, onchange) {
	return h('label', {}, name, h('select', {onchange: (event) => onchange(event.target.value)},
		Object.entries(options).map(([key, [words]]) => h('option', {value: key, selected: key === value}, words))));
}

export class ClusterView {
	constructor(parameters) {
		this.filter = parameters.get('show') in filters ? parameters.get('show') : 'all';
		this.order = parameters.get('by') in orders ? parameters.get('by') : 'name';
		this.words = parameters.get('text') || '';
		this.tiles = [];
		this.list = [];
		this.summary = h('p', {class: 'summary', role: 'status'});
		this.spacer = h('ul', {class: 'tiles', 'aria-label': 'Nodes'});
		this.scroller = h('div', {class: 'scroller', tabindex: '0', role: 'region', 'aria-label': 'Nodes',
			onscroll: () => this.draw()}, this.spacer);
		this.empty = h('p', {class: 'dim', hidden: true}, 'No node matches.');
		this.element = h('div', {class: 'view cluster'}, h('h1', {tabindex: '-1'}, 'Nodes'), this.summary,
			h('form', {class: 'controls', role: 'search', onsubmit: (event) => event.preventDefault()},
				h('label', {}, 'Name or profile', h('input', {type: 'search', value: this.words,
					oninput: (event) => this.choose('words', event.target.value)})),
				choice('Show', filters, this.filter, (value) => this.choose('filter', value)),
				choice('Order', orders, this.order, (value) => this.choose('order', value))),
			h('ul', {class: 'legend', 'aria-label': 'Parts of a bar'}, parts.map(([name, words]) =>
				h('li', {}, h('span', {class: 'key seg ' + name, 'aria-hidden': 'true'}), words))),
			this.empty, this.scroller);
	}

	title() {
		return 'Nodes';
	}

	start() {
		this.stop = listen((kind) => kind === 'changes' && this.schedule());
		this.observer = new ResizeObserver(() => this.draw());
		this.observer.observe(this.scroller);
		this.select();
	}

	end() {
		this.stop();
		this.observer.disconnect();
	}

	choose(what, value) {
		this[what] = value;
		const query = new URLSearchParams({show: this.filter, by: this.order, text: this.words});
		history.replaceState(null, '', '#/cluster?' + query);
		this.scroller.scrollTop = 0;
		this.schedule();
	}

	/* Many changes in one frame are one update. */
	schedule() {
		if (!this.pending)
			this.pending = requestAnimationFrame(() => {
				this.pending = 0;
				this.select();
			});
	}

	select() {
		const words = this.words.toLowerCase(), all = [...state.nodes.values()];
		this.list = all.filter((node) => filters[this.filter][1](node) &&
			(!words || node.name.toLowerCase().includes(words) || (node.profile || '').toLowerCase().includes(words)));
		this.list.sort(orders[this.order][1]);
		this.summarise(all);
		this.empty.hidden = this.list.length > 0;
		this.draw();
	}

	summarise(all) {
		const sum = (f) => all.reduce((n, node) => n + f(node), 0);
		const facts = [plural(all.length, 'node') + (this.list.length !== all.length ? ', ' + this.list.length + ' shown' : ''),
			plural(state.pods, 'pod'), sum(owned) + ' CPUs owned, ' + sum(free) + ' free',
			plural(sum((node) => waits(node, 'Reboot') ? 1 : 0), 'node waits', 'nodes wait') + ' for a reboot',
			sum((node) => problems(node) ? 1 : 0) + ' with findings'];
		text(this.summary, (state.complete ? '' : 'Reading the cluster: ') + facts.join(' · '));
	}

	draw() {
		const width = this.scroller.clientWidth, height = this.scroller.clientHeight;
		if (!width)
			return;
		const columns = Math.max(1, Math.floor((width + GAP) / (MIN_WIDTH + GAP)));
		const each = (width - GAP * (columns - 1)) / columns;
		const rows = Math.ceil(this.list.length / columns), step = HEIGHT + GAP;
		const first = Math.max(0, Math.floor(this.scroller.scrollTop / step) - MARGIN_ROWS);
		const last = Math.min(rows, Math.ceil((this.scroller.scrollTop + height) / step) + MARGIN_ROWS);
		const from = first * columns, n = Math.min(this.list.length, last * columns) - from;
		this.spacer.style.height = Math.max(0, rows * step - GAP) + 'px';
		while (this.tiles.length < n) {
			const tile = new Tile();
			this.tiles.push(tile);
			this.spacer.append(tile.element);
		}
		this.tiles.forEach((tile, i) => {
			tile.element.hidden = i >= n;
		});
		/* A node keeps its tile while it stays in view, so that focus does, too. */
		for (let i = 0; i < n; i++) {
			const at = from + i, tile = this.tiles[at % this.tiles.length];
			tile.element.hidden = false;
			tile.place((at % columns) * (each + GAP), Math.floor(at / columns) * step, each);
			tile.show(this.list[at], at + 1, this.list.length);
		}
		if (n < this.tiles.length) {
			const used = new Set();
			for (let i = 0; i < n; i++)
				used.add((from + i) % this.tiles.length);
			this.tiles.forEach((tile, i) => {
				tile.element.hidden = !used.has(i);
			});
		}
	}
}
