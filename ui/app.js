/* The frame: which view the address names, the link to the dashboard, and the theme. */

import {h, set, text} from './dom.js';
import {follow, setToken} from './data.js';
import {ClusterView} from './cluster.js';
import {NodeView} from './node.js';
import {PodView, PodsView} from './pod.js';
import {WhatIfView} from './whatif.js';

const main = document.getElementById('main');
const link = document.getElementById('link');
const theme = document.getElementById('theme');
const themes = ['system', 'light', 'dark'];
let view = null;

function parse() {
	const [route, query] = location.hash.replace(/^#\/?/, '').split('?');
	const parts = route.split('/').filter(Boolean).map(decodeURIComponent);
	return {parts, parameters: new URLSearchParams(query || '')};
}

function make() {
	const {parts, parameters} = parse();
	switch (parts[0]) {
	case 'node':
		return [new NodeView(parts[1] || '', parameters.get('pod')), 'cluster'];
	case 'pods':
		return [new PodsView(parameters), 'pods'];
	case 'pod':
		return [new PodView(parts[1] || '', parts[2] || ''), 'pods'];
	case 'whatif':
		return [new WhatIfView(parts[1]), 'whatif'];
	default:
		return [new ClusterView(parameters), 'cluster'];
	}
}

function show(isFirst) {
	if (location.hash === '#main') {
		main.focus();
		return;
	}
	if (view)
		view.end();
	const [next, name] = make();
	view = next;
	document.title = view.title() + ' · Pinfold';
	for (const item of document.querySelectorAll('nav a'))
		set(item, {'aria-current': item.dataset.view === name ? 'page' : null});
	main.replaceChildren(view.element);
	view.start();
	window.scrollTo(0, 0);
	if (!isFirst)
		main.querySelector('h1').focus();
}

function applyTheme(name) {
	document.documentElement.dataset.theme = name;
	text(theme, 'Theme: ' + name);
	localStorage.setItem('theme', name);
}

theme.addEventListener('click', () => applyTheme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]));

function askToken(why) {
	const input = h('input', {type: 'password', id: 'token', autocomplete: 'off'});
	main.replaceChildren(h('form', {class: 'view token', onsubmit: (event) => {
		event.preventDefault();
		setToken(input.value.trim());
		begin();
	}}, h('h1', {tabindex: '-1'}, 'Token'), h('p', {role: 'alert'}, why),
	h('label', {for: 'token'}, 'Token', input), h('button', {type: 'submit'}, 'Continue')));
	input.focus();
}

const linkText = {live: 'live', disconnected: 'disconnected, trying again', token: 'token needed'};

function onLink(kind, why) {
	text(link, linkText[kind]);
	link.className = 'link ' + kind;
	if (kind === 'token') {
		if (view)
			view.end();
		view = null;
		askToken(why);
	} else if (!view) {
		show(true);
	}
}

function begin() {
	follow(onLink);
}

if (location.hash.startsWith('#token=')) {
	setToken(decodeURIComponent(location.hash.slice(7)));
	history.replaceState(null, '', '#/cluster');
}
applyTheme(themes.includes(localStorage.getItem('theme')) ? localStorage.getItem('theme') : 'system');
window.addEventListener('hashchange', () => show(false));
begin();
