/* Pods: a search over all of them, and one pod with the rules that decided about it. */

import {h, text, table, row, badge, plural, clock, path} from './dom.js';
import {get, listen} from './data.js';
import {settings} from './map.js';
import {eventText, placeOf} from './node.js';

const SEARCH_MS = 200;

export class PodsView {
	constructor(parameters) {
		this.words = parameters.get('text') || '';
		this.found = h('p', {class: 'summary', role: 'status'});
		this.result = h('div', {});
		this.element = h('div', {class: 'view pods'}, h('h1', {tabindex: '-1'}, 'Pods'),
			h('form', {class: 'controls', role: 'search', onsubmit: (event) => event.preventDefault()},
				h('label', {}, 'Namespace or name', h('input', {type: 'search', value: this.words, oninput: (event) => this.search(event.target.value)}))),
			this.found, this.result);
	}

	title() {
		return 'Pods';
	}

	start() {
		this.stop = listen((kind) => kind === 'changes' && this.schedule(1000));
		return this.read();
	}

	end() {
		this.stop();
		clearTimeout(this.timer);
	}

	search(words) {
		this.words = words;
		history.replaceState(null, '', '#/pods?' + new URLSearchParams({text: words}));
		clearTimeout(this.timer);
		this.timer = 0;
		this.schedule(SEARCH_MS);
	}

	schedule(after) {
		if (!this.timer)
			this.timer = setTimeout(() => {
				this.timer = 0;
				this.read();
			}, after);
	}

	async read() {
		try {
			const {pods, found} = await get('pods', {text: this.words});
			pods.sort((a, b) => a.namespace.localeCompare(b.namespace) || a.name.localeCompare(b.name, 'en', {numeric: true}));
			text(this.found, plural(found, 'pod') + (found > pods.length ? ', the first ' + pods.length + ' are shown' : ''));
			this.result.replaceChildren(table('Pods', ['Pod', 'Node', 'Pools', 'Containers', 'State'], pods.map((pod) => row([
				h('a', {href: path('pod', pod.namespace, pod.name)}, pod.namespace + '/' + pod.name),
				pod.node ? h('a', {href: path('node', pod.node)}, pod.node) : 'not scheduled',
				[...new Set(pod.containers.map((c) => c.pool))].map((pool) => h('span', {class: 'pool ' + pool}, pool)),
				String(pod.containers.length), pod.state])), 'No pod matches.'));
		} catch (e) {
			text(this.found, 'Cannot read the pods: ' + e.message);
		}
	}
}

const verdicts = {yes: 'ok', changed: 'ok', unchanged: 'info', 'skipped, annotations removed': 'warn', refused: 'error'};

function value(op) {
	return op.value === undefined ? '' : typeof op.value === 'string' ? op.value : JSON.stringify(op.value);
}

export class PodView {
	constructor(namespace, name) {
		this.namespace = namespace;
		this.name = name;
		this.facts = h('p', {class: 'summary', role: 'status'});
		this.body = h('div', {});
		this.element = h('div', {class: 'view pod'}, h('h1', {tabindex: '-1'}, 'Pod ', namespace + '/' + name), this.facts, this.body);
	}

	title() {
		return 'Pod ' + this.namespace + '/' + this.name;
	}

	async start() {
		this.stop = listen((kind, detail) => {
			if (kind === 'changes' && (detail.all || detail.nodes.some((n) => this.pod && n.name === this.pod.node) || !this.pod))
				this.schedule();
		});
		await this.read();
	}

	end() {
		this.stop();
		clearTimeout(this.timer);
	}

	schedule() {
		if (!this.timer)
			this.timer = setTimeout(() => {
				this.timer = 0;
				this.read();
			}, 300);
	}

	async read() {
		const query = {namespace: this.namespace, name: this.name};
		let log = {events: []};
		try {
			log = await get('history', {namespace: this.namespace, pod: this.name});
			this.pod = await get('pod', query);
		} catch (e) {
			this.pod = null;
			text(this.facts, e.status === 404 ? 'This pod does not exist (any more).' : 'Cannot read the pod: ' + e.message);
			this.body.replaceChildren(this.history(log));
			return;
		}
		const pod = this.pod;
		this.facts.replaceChildren(pod.state, ' · ', pod.node ? h('span', {}, 'on node ', h('a', {href: placeOf(pod.node, pod)}, pod.node)) : 'not scheduled');
		this.body.replaceChildren(
			h('section', {}, h('h2', {}, 'Where it runs'), table('Containers of the pod', ['Container', 'Pool', 'CPUs', 'Settings'],
				pod.containers.map((c) => row([c.name + (c.kind === 'app' ? '' : ' (' + c.kind + ')'), h('span', {class: 'pool ' + c.pool}, c.pool),
					c.cpus || (c.exclusive ? 'not reported' : 'all of the pool'), settings(c)])), 'No containers.')),
			pod.explain ? this.explain(pod.explain) : h('section', {}, h('h2', {}, 'Why'), h('p', {class: 'dim'}, 'No explanation: ' + pod.unexplained + '.')),
			this.history(log));
	}

	explain(why) {
		return h('section', {}, h('h2', {}, 'Why'),
			why.happened ? h('p', {}, h('strong', {}, 'What happened: '), why.happened + '.') : null,
			why.happenedAdvice ? h('p', {}, h('strong', {}, 'To change that: '), why.happenedAdvice + '.') : null,
			h('p', {}, 'Created again, the pod meets these rules:'),
			h('ol', {class: 'chain'}, why.steps.map((step) => h('li', {}, h('span', {class: 'rule'}, step.rule), ' ', step.question,
				h('span', {class: 'seen'}, step.seen), badge(verdicts[step.verdict] || 'info', step.verdict)))),
			h('p', {}, h('strong', {}, 'Result: '), why.result + '.'),
			why.advice ? h('p', {}, h('strong', {}, 'To change that: '), why.advice + '.') : null,
			why.warnings.map((warning) => h('p', {class: 'note warn'}, badge('warn', 'warning'), ' ', warning)),
			h('h3', {}, 'Patch'),
			why.patch.length ? table('Patch', ['Operation', 'Path', 'Value'], why.patch.map((op) => row([op.op, h('code', {}, op.path), h('code', {}, value(op))])), '') :
				h('p', {class: 'dim'}, 'Admission would change nothing.'));
	}

	history(log) {
		const rows = log.events.slice().reverse().map((event) => row([clock(event.time), event.node ? h('a', {href: path('node', event.node)}, event.node) : '',
			event.container, eventText(event), event.why]));
		return h('section', {}, h('h2', {}, 'History of the last hour'),
			table('History of the pod', ['Time', 'Node', 'Container', 'CPUs', 'Why'], rows, 'It has not moved during the last hour, as far as the dashboard has run.'));
	}
}
