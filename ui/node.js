/* One node: its CPUs, what runs on them now or at a time of the last hour, and what has changed. */

import {h, set, text, table, row, badge, plural, clock, path} from './dom.js';
import {count} from './cpus.js';
import {get, listen} from './data.js';
import {CpuMap, describe, legend, settings} from './map.js';
import {waitText} from './cluster.js';

const HOUR = 3600 * 1000;
const ASK_MS = 5000; /* how often the page says that it shows the node */

const podKey = (namespace, pod) => namespace + '/' + pod;

/* The pools and pods as they were: the changes since then are taken back, the newest first. */
export function stateAt(node, events, time) {
	const pools = {management: node.management, shared: node.shared, guaranteed: node.guaranteed};
	const pods = new Map(node.podList.map((pod) => [podKey(pod.namespace, pod.name),
		Object.assign({}, pod, {containers: pod.containers.slice()})]));
	for (let i = events.length - 1; i >= 0 && events[i].time > time; i--) {
		const event = events[i];
		if (event.node !== node.name)
			continue;
		if (!event.pod) {
			pools[event.from.pool] = event.from.cpus;
			continue;
		}
		const key = podKey(event.namespace, event.pod);
		if (!pods.has(key))
			pods.set(key, {namespace: event.namespace, name: event.pod, state: 'removed', containers: []});
		const pod = pods.get(key);
		const now = pod.containers.find((c) => c.name === event.container);
		pod.containers = pod.containers.filter((c) => c.name !== event.container);
		if (event.from)
			pod.containers.push(Object.assign({}, now || {name: event.container}, {pool: event.from.pool, cpus: event.from.cpus,
				exclusive: event.from.pool === 'guaranteed' && event.from.cpus !== ''}));
	}
	return {pools, pods: [...pods.values()].filter((pod) => pod.containers.length)};
}

export function eventText(event) {
	const place = (p) => p.pool + (p.cpus ? ' ' + p.cpus : '');
	if (event.from && event.to)
		return place(event.from) + ' → ' + place(event.to);
	return event.to ? '→ ' + place(event.to) : place(event.from) + ' →';
}

function parsePod(text) {
	const at = (text || '').indexOf('/');
	return at < 0 ? null : {namespace: text.slice(0, at), name: text.slice(at + 1)};
}

/* The page of a node, with this pod marked. */
export function placeOf(node, pod) {
	return path('node', node) + '?' + new URLSearchParams({pod: podKey(pod.namespace, pod.name)});
}

export class NodeView {
	/* `followed`, "namespace/name", is the pod that the user follows over nodes. */
	constructor(name, followed) {
		this.name = name;
		this.marked = parsePod(followed);
		this.time = 0; /* 0: now */
		this.events = [];
		this.since = Date.now();
		this.map = new CpuMap('CPUs of ' + name, (entry) => this.select(entry), (entry) => this.pin(entry));
		this.facts = h('p', {class: 'summary'});
		this.notes = h('div', {});
		this.trail = h('p', {class: 'trail', role: 'status', hidden: true});
		this.detail = h('div', {class: 'detail', role: 'status', 'aria-label': 'Selected CPU'},
			h('p', {class: 'dim'}, 'Point at a CPU, or use Tab and the arrow keys.'));
		this.slider = h('input', {type: 'range', min: 0, max: 3600, value: 3600, step: 1, id: 'time',
			oninput: () => this.setTime(Number(this.slider.value))});
		this.when = h('output', {for: 'time'}, 'now');
		this.legend = h('div', {}, legend(false));
		this.log = h('div', {});
		this.containers = h('div', {});
		this.element = h('div', {class: 'view node'},
			h('h1', {tabindex: '-1'}, 'Node ', name), this.facts, this.notes, this.trail,
			h('div', {class: 'columns'},
				h('div', {class: 'wide'}, this.legend, this.map.element),
				h('aside', {class: 'side', 'aria-label': 'Details'}, this.detail)),
			h('section', {class: 'time', 'aria-label': 'The last hour'},
				h('h2', {}, 'The last hour'),
				h('div', {class: 'slider'}, h('label', {for: 'time'}, 'Time'), this.slider, this.when,
					h('button', {type: 'button', class: 'quiet', onclick: () => this.setTime(3600)}, 'Now')),
				this.log),
			h('section', {}, h('h2', {}, 'Containers'), this.containers),
			h('p', {class: 'after'}, h('a', {href: path('whatif', name)}, 'What would another profile change here?')));
	}

	title() {
		return 'Node ' + this.name;
	}

	async start() {
		this.stop = listen((kind, detail) => {
			if (kind === 'use' && detail.name === this.name && !this.time)
				this.measured(detail.use);
			else if (kind === 'changes' && (detail.all || detail.nodes.some((n) => n.name === this.name) || detail.removed.includes(this.name)))
				this.reload();
		});
		this.asking = setInterval(() => this.ask(), ASK_MS);
		this.ask();
		await this.reload();
	}

	end() {
		this.stop();
		clearInterval(this.asking);
		this.ended = true;
	}

	/* CPUs of a cluster's node are measured only while a page asks for it. */
	async ask() {
		let why = '';
		try {
			why = (await get('use', {node: this.name})).why || '';
		} catch (e) {
			return; /* the stream reports a lost connection, and reload() a missing node */
		}
		if (why !== this.unmeasured) {
			this.unmeasured = why;
			if (why)
				this.map.setUse(null);
			if (this.selected)
				this.select(this.map.entries.get(this.selected.cpu));
		}
	}

	useText(cpu) {
		const use = this.map.use[cpu];
		if (use !== undefined)
			return 'Use: ' + use + ' % busy.';
		return this.time || !this.unmeasured ? 'Use: not measured.' : 'Use: not measured, because ' + this.unmeasured + '.';
	}

	/* One request at a time; a change meanwhile leads to another one. */
	async reload() {
		if (this.loading) {
			this.again = true;
			return;
		}
		this.loading = true;
		try {
			const [node, log] = await Promise.all([get('node', {name: this.name}), get('history', {node: this.name})]);
			this.node = node;
			this.events = log.events;
			this.since = log.since;
			this.show();
		} catch (e) {
			text(this.facts, e.status === 404 ? 'This node does not exist (any more).' : 'Cannot read the node: ' + e.message);
		}
		this.loading = false;
		if (this.again && !this.ended) {
			this.again = false;
			await this.reload();
		}
	}

	measured(use) {
		if (!this.hasUse)
			this.legend.replaceChildren(legend(true));
		this.hasUse = true;
		this.map.setUse(use);
		if (this.selected)
			this.select(this.map.entries.get(this.selected.cpu));
	}

	setTime(value) {
		const time = value >= 3600 ? 0 : Math.max(this.since, Date.now() - HOUR + value * 1000);
		this.time = time;
		this.slider.value = value;
		const words = time ? clock(time) : 'now';
		text(this.when, words);
		set(this.slider, {'aria-valuetext': words});
		this.show();
	}

	show() {
		const node = this.node;
		const {pools, pods} = this.time ? stateAt(node, this.events, this.time) :
			{pools: node, pods: node.podList};
		this.shown = {pools, pods};
		this.map.update(node, describe(node, pools, pods), this.marked);
		if (this.time)
			this.map.setUse(null);
		else if (node.measured)
			this.measured(node.measured);
		this.showFacts(node, pools);
		this.showLog();
		this.showContainers(pods);
		if (this.selected)
			this.select(this.map.entries.get(this.selected.cpu));
		this.showTrail();
	}

	/* Where the followed pod is: here, or on another node by now. */
	async showTrail() {
		const pod = this.marked;
		this.trail.hidden = !pod;
		if (!pod)
			return;
		const link = h('a', {href: path('pod', pod.namespace, pod.name)}, podKey(pod.namespace, pod.name));
		const stop = h('button', {type: 'button', class: 'quiet', onclick: () => this.mark(null)}, 'Stop');
		if (this.node.podList.some((p) => p.namespace === pod.namespace && p.name === pod.name)) {
			this.trail.replaceChildren('Following ', link, '. ', stop);
			return;
		}
		let where = '';
		try {
			where = (await get('pod', {namespace: pod.namespace, name: pod.name})).node;
		} catch (e) {
			/* it is gone */
		}
		if (pod !== this.marked)
			return;
		this.trail.replaceChildren('Following ', link, ...(where ? [', which runs on ', h('a', {href: placeOf(where, pod)}, where), ' now. '] :
			[', which no longer exists. ']), stop);
	}

	mark(pod) {
		this.marked = pod;
		history.replaceState(null, '', pod ? placeOf(this.name, pod) : path('node', this.name));
		this.map.update(this.node, this.map.entries, pod);
		this.showTrail();
	}

	showFacts(node, pools) {
		const size = (list) => (list || 'none') + ' (' + count(list) + ')';
		const parts = ['management ' + size(pools.management), 'shared ' + size(pools.shared), 'guaranteed ' + size(pools.guaranteed)];
		if (node.profile)
			parts.push('profile ' + node.profile);
		if (node.agent)
			parts.push('agent ' + node.agent);
		if (!node.coresKnown && (node.groups || []).length)
			parts.push('cores and caches are not reported by this agent');
		text(this.facts, parts.join(' · '));
		this.notes.replaceChildren(
			...(node.pending || []).map((change) => h('p', {class: 'note warn'}, badge('warn', waitText[change.what] || change.what),
				' ', change.reason + ': ' + change.message + (change.granted ? ' The operator has allowed it.' : ''))),
			...node.findings.map((finding) => h('p', {class: finding.note ? 'note' : 'note bad'}, badge(finding.note ? 'info' : 'error', finding.reason), ' ', finding.message)));
	}

	showLog() {
		const rows = this.events.slice(-200).reverse().map((event) => row([
			h('button', {type: 'button', class: 'quiet', onclick: () =>
				this.setTime(Math.max(0, Math.min(3599, Math.ceil((event.time - Date.now() + HOUR) / 1000))))}, clock(event.time)),
			event.pod ? h('a', {href: path('pod', event.namespace, event.pod)}, podKey(event.namespace, event.pod)) : 'pool',
			event.container || event.to.pool, eventText(event), event.why],
		{class: this.time && event.time > this.time ? 'later' : null}));
		this.log.replaceChildren(table('What has changed on this node', ['Time', 'Pod', 'Container', 'CPUs', 'Why'], rows,
			'Nothing has changed since ' + clock(this.since) + '.'));
	}

	showContainers(pods) {
		const rows = [];
		pods = pods.slice().sort((a, b) => podKey(a.namespace, a.name).localeCompare(podKey(b.namespace, b.name), 'en', {numeric: true}));
		for (const pool of ['management', 'shared', 'guaranteed'])
			for (const pod of pods)
				for (const container of pod.containers.filter((c) => c.pool === pool))
					rows.push(row([h('a', {href: path('pod', pod.namespace, pod.name)}, podKey(pod.namespace, pod.name)), container.name,
						h('span', {class: 'pool ' + pool}, pool), container.cpus || (container.exclusive ? 'not reported' : 'all of the pool'),
						settings(container), pod.state]));
		this.containers.replaceChildren(table('Containers of this node',
			['Pod', 'Container', 'Pool', 'CPUs', 'Settings', 'State'], rows, 'No container runs here.'));
	}

	select(entry) {
		if (!entry)
			return;
		this.selected = entry;
		const list = entry.owner ? [entry.owner] : entry.containers;
		this.detail.replaceChildren(
			h('h2', {}, 'CPU ' + entry.cpu),
			h('p', {}, entry.pool === 'none' ? 'In no pool.' : 'Pool: ' + entry.pool + (entry.pool === 'guaranteed' ? entry.owner ? ', owned' : ', free' : '') + '.'),
			h('p', {}, this.useText(entry.cpu)),
			h('ul', {class: 'plain'}, list.slice(0, 12).map(({pod, container}) => h('li', {},
				h('a', {href: path('pod', pod.namespace, pod.name)}, podKey(pod.namespace, pod.name)), ' ', container.name,
				h('span', {class: 'dim'}, ' ' + settings(container))))),
			list.length > 12 ? h('p', {class: 'dim'}, 'and ' + plural(list.length - 12, 'more container')) : '');
	}

	/* A click follows the pod that owns the CPU: its other CPUs are marked, and where it goes is told. A second one opens it. */
	pin(entry) {
		if (!entry)
			return;
		const target = entry.owner || (entry.containers.length === 1 ? entry.containers[0] : null);
		const same = this.marked && target && this.marked.name === target.pod.name && this.marked.namespace === target.pod.namespace;
		if (same)
			location.hash = path('pod', target.pod.namespace, target.pod.name);
		else
			this.mark(target && {namespace: target.pod.namespace, name: target.pod.name});
	}
}
