/* Requests to the dashboard, and its stream of changes. The token, if there is one, is in the address of the page
 * ("#token=...") or is asked for; it is kept for this tab only and sent as a header, never as a cookie. */

let token = sessionStorage.getItem('token') || '';

export class Refused extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

export function setToken(value) {
	token = value;
	sessionStorage.setItem('token', value);
}

function headers(more) {
	return Object.assign(token ? {Authorization: 'Bearer ' + token} : {}, more);
}

async function checked(response) {
	if (response.ok)
		return response;
	let message = response.status + ' ' + response.statusText;
	try {
		message = (await response.json()).error || message;
	} catch (e) {
		/* not from the dashboard: the status has to do */
	}
	throw new Refused(response.status, message);
}

function target(name, parameters) {
	const query = new URLSearchParams(parameters || {}).toString();
	return 'api/' + name + (query ? '?' + query : '');
}

/* Where users are those of a cluster, the dashboard has a token reviewed when the page asks for it. */
async function ask(where, options = {}) {
	const send = () => fetch(where, Object.assign({}, options, {headers: headers(options.headers)}));
	const response = await send();
	if (response.status !== 401 || !token)
		return checked(response);
	await checked(await fetch('api/session', {headers: headers()}));
	return checked(await send());
}

export async function get(name, parameters) {
	return (await ask(target(name, parameters))).json();
}

export async function getText(name, parameters) {
	return (await ask(target(name, parameters))).text();
}

export async function post(name, body) {
	return (await ask(target(name), {method: 'POST', body: JSON.stringify(body),
		headers: {'Content-Type': 'application/json'}})).json();
}

/* The nodes of the list, by name, as the dashboard last reported them. */
export const state = {nodes: new Map(), cluster: true, complete: false, pods: 0, revision: 0};

const listeners = new Set();

export function listen(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

function emit(kind, detail) {
	for (const listener of listeners)
		listener(kind, detail);
}

function putNode(node) {
	const old = state.nodes.get(node.name);
	if (!old || old.revision <= node.revision)
		state.nodes.set(node.name, node);
}

async function readAll() {
	const all = await get('cluster');
	state.cluster = all.cluster;
	state.complete = all.complete;
	state.pods = all.pods;
	state.revision = all.revision;
	state.nodes = new Map(all.nodes.map((node) => [node.name, node]));
	emit('changes', {all: true, nodes: all.nodes, removed: []});
}

async function onEvent(name, data) {
	const value = JSON.parse(data);
	if (name === 'use') {
		emit('use', value);
		return;
	}
	if (name !== 'changes')
		return;
	if (value.all) {
		await readAll();
		return;
	}
	value.nodes.forEach(putNode);
	value.removed.forEach((gone) => state.nodes.delete(gone));
	state.complete = value.complete;
	state.pods = value.pods;
	state.revision = value.revision;
	emit('changes', value);
}

/* EventSource cannot send a header, so the stream is read here. */
async function readStream(response) {
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let buffer = '';
	for (;;) {
		const {value, done} = await reader.read();
		if (done)
			return;
		buffer += value;
		for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
			const lines = buffer.slice(0, end).split('\n');
			buffer = buffer.slice(end + 2);
			const name = lines.find((line) => line.startsWith('event: '));
			const data = lines.find((line) => line.startsWith('data: '));
			if (name && data)
				await onEvent(name.slice(7), data.slice(6));
		}
	}
}

/* Connects again and again. The stream is opened before everything is read, so that no change is missed. */
export async function follow(onLink) {
	for (let wait = 500;; wait = Math.min(wait * 2, 10000)) {
		try {
			const response = await ask(target('events'));
			await readAll();
			onLink('live');
			wait = 250;
			await readStream(response);
			onLink('disconnected');
		} catch (e) {
			if (e.status === 401 || e.status === 403) {
				onLink('token', e.message);
				return;
			}
			onLink('disconnected');
		}
		await new Promise((done) => setTimeout(done, wait));
	}
}
