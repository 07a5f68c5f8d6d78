/* What another profile would do to a node. The dashboard answers with the code of `pinfold profile check` and
 * `pinfold plan`; nothing is written. */

import {h, text, table, row, badge, plural, path} from './dom.js';
import {byCpu, parse} from './cpus.js';
import {state, get, getText, post, listen} from './data.js';
import {CpuMap, describe, legend} from './map.js';

const CHECK_MS = 500;
const effects = {nothing: ['ok', 'No restart needed: the agent applies it live.'], restart: ['warn', 'The kubelet or the runtime has to be restarted.'],
	reboot: ['warn', 'The node has to be rebooted.']};
const levels = {error: 'error', warning: 'warn', note: 'info'};

export class WhatIfView {
	constructor(name) {
		this.name = name || '';
		this.status = h('p', {class: 'summary', role: 'status'});
		this.options = h('datalist', {id: 'nodes'});
		this.choice = h('input', {id: 'node-name', list: 'nodes', value: this.name, autocomplete: 'off', onchange: () => this.choose(this.choice.value.trim())});
		this.editor = h('textarea', {id: 'profile', spellcheck: 'false', rows: 16, autocapitalize: 'off', oninput: () => this.schedule()});
		this.before = new CpuMap('CPUs now', () => {}, () => {});
		this.after = new CpuMap('CPUs with the new profile', () => {}, () => {});
		this.result = h('div', {});
		this.lists = h('div', {});
		this.element = h('div', {class: 'view whatif'}, h('h1', {tabindex: '-1'}, 'What if'),
			h('p', {class: 'dim'}, 'Edit the profile and see what it would change on a node. Nothing is written to the cluster.'),
			h('div', {class: 'columns even'},
				h('div', {},
					h('div', {class: 'controls'}, h('label', {for: 'node-name'}, 'Node', this.choice), this.options,
						h('button', {type: 'button', onclick: () => this.load()}, 'Reset to the present profile'),
						h('button', {type: 'button', onclick: () => this.save()}, 'Export YAML')),
					h('label', {for: 'profile', class: 'block'}, 'PerformanceProfile (YAML)'), this.editor),
				h('div', {}, this.status, this.result)),
			legend(false),
			h('div', {class: 'columns even'}, h('section', {}, h('h2', {}, 'Now'), this.before.element),
				h('section', {}, h('h2', {}, 'With this profile'), this.after.element)), this.lists);
	}

	title() {
		return 'What if';
	}

	async start() {
		this.stop = listen((kind) => kind === 'changes' && this.fill());
		this.fill();
		await this.load();
	}

	end() {
		this.stop();
		clearTimeout(this.timer);
	}

	/* Names of the list; with very many the browser completes only the first. */
	fill() {
		const names = [...state.nodes.keys()].sort();
		if (!this.name && names.length) {
			this.name = names[0];
			this.choice.value = this.name;
			this.load();
		}
		if (this.options.childElementCount !== Math.min(names.length, 500))
			this.options.replaceChildren(...names.slice(0, 500).map((name) => h('option', {value: name})));
	}

	choose(name) {
		this.name = name;
		history.replaceState(null, '', path('whatif', name));
		return this.load();
	}

	async load() {
		if (!this.name)
			return;
		try {
			this.node = await get('node', {name: this.name});
			this.editor.value = await getText('profile', {node: this.name});
			await this.check();
		} catch (e) {
			this.fail(e);
		}
	}

	fail(e) {
		text(this.status, e.status === 404 ? 'There is no node ' + this.name + '.' : 'Cannot compare: ' + e.message);
		this.result.replaceChildren();
		this.lists.replaceChildren();
	}

	schedule() {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.check(), CHECK_MS);
	}

	async check() {
		const asked = this.editor.value, node = this.node;
		try {
			const answer = await post('what-if', {node: this.name, profile: asked});
			if (asked === this.editor.value && node === this.node)
				this.show(answer);
		} catch (e) {
			this.fail(e);
		}
	}

	show(answer) {
		const errors = answer.problems.filter((p) => p.level === 'error').length;
		const unfit = (answer.pods || []).filter((pod) => !pod.fits).length;
		const before = byCpu(this.node), after = answer.pools ? byCpu(answer.pools) : null;
		const changed = new Set();
		if (after)
			for (const cpu of new Set([...before.keys(), ...after.keys()]))
				if (before.get(cpu) !== after.get(cpu))
					changed.add(cpu);
		this.before.update(this.node, describe(this.node, this.node, this.node.podList), null, changed);
		this.after.update(this.node, describe(this.node, answer.pools || {}, this.staying(after)), null, changed);
		text(this.status, errors ? plural(errors, 'problem') + ': this profile cannot be used.' :
			plural(changed.size, 'CPU changes', 'CPUs change') + ' pool, ' + plural(unfit, 'pod no longer fits', 'pods no longer fit') +
			(state.cluster ? '; the profile selects ' + plural(answer.nodes || 0, 'node') : '') + '.');
		this.result.replaceChildren(...[
			answer.effect && h('p', {}, badge(effects[answer.effect][0], answer.effect === 'nothing' ? 'live' : answer.effect), ' ', effects[answer.effect][1]),
			answer.problems.length ? table('Problems', ['Level', 'Line', 'Field', 'Problem'], answer.problems.map((p) =>
				row([badge(levels[p.level] || 'info', p.level), p.line ? String(p.line) : '', h('code', {class: 'whole'}, p.field || ''), p.text])), '') : null,
		].filter(Boolean));
		this.lists.replaceChildren(...[
			answer.pods && h('h2', {}, 'Pods that move or no longer fit'),
			answer.pods && table('Pods that move or no longer fit', ['Pod', 'Pool', 'Result', 'Why'], answer.pods.map((pod) => row([
				h('a', {href: path('pod', pod.namespace, pod.name)}, pod.namespace + '/' + pod.name), h('span', {class: 'pool ' + pod.class}, pod.class),
				pod.fits ? badge('info', 'moves') : badge('error', 'no longer fits'), pod.reason])), 'None.'),
			answer.files && h('h2', {}, 'Files of the host'),
			answer.files && table('Files of the host', ['Change', 'File', 'Effect', 'Concerns'], answer.files.map((f) =>
				row([f.change, h('code', {}, f.path), f.effect, f.reason])), 'No file changes.'),
		].filter(Boolean));
	}

	/* The pods whose exclusive CPUs stay in the guaranteed pool: they keep them. */
	staying(after) {
		return this.node.podList.map((pod) => Object.assign({}, pod, {containers: pod.containers.filter((c) =>
			c.exclusive && c.cpus && after && parse(c.cpus).every((cpu) => after.get(cpu) === 'guaranteed'))}));
	}

	save() {
		const link = h('a', {href: URL.createObjectURL(new Blob([this.editor.value], {type: 'application/yaml'})), download: 'profile.yaml'});
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.href), 1000);
	}
}
