/* One machine: the status of an agent on a large node, and `pinfold local` with real processes on this one. */

import assert from 'node:assert';
import {execFileSync, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import test, {after, before} from 'node:test';
import {accessible, close, closeBrowser, isLive, limit, open, pinfold, root, serve, shot, until} from './lib.js';

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'pinfold-ui-'));
const hostile = '<img src=x onerror=alert(1)>"&\'</script>';
const topology = 'pack:2 numa:1 l3:2 core:8 pu:2';

/* The status that an agent of a 64-CPU node wrote; tests change it as the agent would. */
const run = path.join(work, 'run');
const status = JSON.parse(fs.readFileSync(path.join(root, 'tests/golden/map-64/run/status.json'), 'utf8'));

function write() {
	fs.writeFileSync(path.join(run, 'status.json.new'), JSON.stringify(status));
	fs.renameSync(path.join(run, 'status.json.new'), path.join(run, 'status.json'));
}

before(() => {
	fs.mkdirSync(run);
	status.node = 'edge-1';
	for (const container of status.containers)
		Object.assign(container, {shares: 512, quotaUs: 50000, periodUs: 100000});
	write();
});

after(async () => {
	await closeBrowser();
	fs.rmSync(work, {recursive: true});
});

async function withAgent(fn) {
	const dashboard = await serve('--run-dir', run, '--topology', topology);
	try {
		await fn(dashboard.url);
	} finally {
		assert.equal((await dashboard.stop()).code, 0);
	}
}

test('the node has its sockets, caches, cores and pools, and tells who is where', () => withAgent(async (url) => {
	const page = await open(url + '#/node/edge-1', {bypassCSP: false});
	await isLive(page);
	await page.locator('.cpu.owned').first().waitFor();
	assert.equal(await page.locator('.map .socket').count(), 2);
	assert.equal(await page.locator('.map .cache').count(), 4);
	assert.equal(await page.locator('.map .core').count(), 32);
	assert.equal(await page.locator('.map .cpu').count(), 64);
	assert.equal(await page.locator('.map .cpu.management').count(), 4);
	await page.getByRole('button', {name: /^CPU 12, guaranteed pool, owned by ran-du\/vdu-0/}).hover();
	assert.match(await page.locator('.detail').innerText(), /CPU 12[^]*ran-du\/vdu-0[^]*512 shares[^]*quota/);
	/* A click marks the CPUs of the pod, the second one opens it. */
	await page.getByRole('button', {name: /^CPU 12,/}).click();
	assert.ok(await page.locator('.cpu.marked').count() > 1);
	await page.getByRole('button', {name: /^CPU 12,/}).click();
	await page.getByRole('heading', {name: 'Pod ran-du/vdu-0'}).waitFor();
	await close(page);
}));

test('the keyboard reaches every CPU', () => withAgent(async (url) => {
	const page = await open(url + '#/node/edge-1');
	await page.locator('.cpu.owned').first().waitFor();
	await page.locator('.map .cpu').first().focus();
	await page.keyboard.press('ArrowRight');
	await page.keyboard.press('ArrowRight');
	assert.match(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), /^CPU 2, shared pool/);
	await page.keyboard.press('ArrowDown');
	assert.match(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), /^CPU 18, /);
	await page.keyboard.press('End');
	assert.match(await page.locator('.detail').innerText(), /CPU 63/);
	await close(page);
}));

test('a container that starts is shown within a second, and the slider goes back before it', () => withAgent(async (url) => {
	const page = await open(url + '#/node/edge-1');
	await isLive(page);
	await page.locator('.cpu.owned').first().waitFor();
	const owned = await page.locator('.cpu.owned').count();
	const added = {namespace: 'ran-du', pod: 'late', uid: 'u', container: 'l2', id: '9', pool: 'guaranteed', exclusive: true, cpus: '60-61',
		cgroup: '/x', shares: 2048};
	await page.waitForTimeout(1100);
	const began = Date.now();
	status.containers.push(added);
	write();
	await page.locator('.cpu.owned', {hasText: '60'}).waitFor({timeout: 10000});
	const took = Date.now() - began;
	console.log(`a started container was shown after ${took} ms`);
	assert.ok(took < limit, `${took} ms`);
	assert.equal(await page.locator('.cpu.owned').count(), owned + 2);
	await page.getByRole('row', {name: /ran-du\/late.*placed, with exclusive CPUs/}).waitFor();
	await page.waitForTimeout(1500);
	/* Two seconds before now, in steps of the slider. */
	await page.locator('#time').fill(String(3600 - Math.ceil((Date.now() - began) / 1000) - 1));
	await until('the map of the past', 5000, async () => await page.locator('.cpu.owned').count() === owned);
	assert.notEqual(await page.locator('.slider output').innerText(), 'now');
	await page.getByRole('button', {name: 'Now', exact: true}).click();
	await until('the present map', 5000, async () => await page.locator('.cpu.owned').count() === owned + 2);
	status.containers.pop();
	write();
	await page.getByRole('row', {name: /its exclusive CPUs are free again/}).waitFor();
	await close(page);
}));

test('what if compares the maps and names problems by field, and writes nothing', () => withAgent(async (url) => {
	const page = await open(url + '#/whatif/edge-1');
	const editor = page.locator('textarea');
	await until('the present profile', 10000, async () => (await editor.inputValue()).includes('reserved: "0-1,32-33"'));
	const present = await editor.inputValue();
	await editor.fill(present.replace('0-1,32-33', '0-3,32-35').replace('2-9,34-41', '4-9,36-41'));
	await page.getByText('4 CPUs change pool').waitFor();
	assert.equal(await page.locator('.map').nth(1).locator('.cpu.management').count(), 8);
	await page.getByText('The node has to be rebooted.').waitFor();
	await page.getByRole('row', {name: /moves to the new management CPUs/}).first().waitFor();
	/* Fewer CPUs than are owned. */
	await editor.fill(present.replace('10-31,42-63', '10-11').replace('2-9,34-41', '2-9,12-31,34-63'));
	await page.getByRole('row', {name: /no longer fits/}).first().waitFor();
	await editor.fill(present.replace('2-9,34-41', '1-9,34-41'));
	await page.getByRole('row', {name: /error.*spec\.cpu.*overlap/}).first().waitFor();
	await editor.fill('kind: [');
	await page.getByText(/this profile cannot be used/).waitFor();
	const download = page.waitForEvent('download');
	await editor.fill(present);
	await page.getByRole('button', {name: 'Export YAML'}).click();
	assert.equal(fs.readFileSync(await (await download).path(), 'utf8'), present);
	await close(page);
}));

test('names of pods are text, never markup', () => withAgent(async (url) => {
	status.containers.push({namespace: hostile, pod: hostile, uid: 'h', container: hostile, id: '10', pool: 'guaranteed', exclusive: true,
		cpus: '62-63', cgroup: '/y'});
	write();
	const page = await open(url + '#/node/edge-1', {bypassCSP: false});
	page.on('dialog', (dialog) => page.faults.push('a dialog: ' + dialog.message()));
	await page.locator('.cpu.owned', {hasText: '62'}).waitFor();
	await page.getByRole('button', {name: /^CPU 62,/}).hover();
	assert.ok((await page.locator('.detail').innerText()).includes(hostile));
	await page.goto(url + '#/pods?' + new URLSearchParams({text: 'img'}));
	await page.getByRole('link', {name: hostile + '/' + hostile}).click();
	await page.getByRole('heading', {name: 'Pod ' + hostile}).waitFor();
	assert.equal(await page.locator('main img').count(), 0);
	assert.equal(await page.locator('script').count(), 1);
	status.containers.pop();
	write();
	await close(page);
}));

test('a dashboard with a token asks for it', async () => {
	const file = path.join(work, 'token');
	fs.writeFileSync(file, 'correct horse battery staple\n');
	const dashboard = await serve('--run-dir', run, '--topology', topology, '--token-file', file);
	const page = await open(dashboard.url);
	await page.getByLabel('Token').fill('wrong horse battery staple');
	await page.getByRole('button', {name: 'Continue'}).click();
	await page.getByLabel('Token').waitFor();
	await accessible(page, 'token');
	page.faults.length = 0; /* the browser reports each 401 */
	await page.getByLabel('Token').fill('correct horse battery staple');
	await page.getByRole('button', {name: 'Continue'}).click();
	await page.locator('.tile').first().waitFor();
	assert.equal((await page.context().cookies()).length, 0);
	await close(page);
	const other = await open(dashboard.url + '#token=correct%20horse%20battery%20staple');
	await other.locator('.tile').first().waitFor();
	assert.ok(!other.url().includes('token'));
	await close(other);
	await dashboard.stop();
});

/* A name that an attacker resolves to 127.0.0.1 has that name in Host; a page elsewhere has an Origin. */
test('foreign names and origins are refused', () => withAgent(async (url) => {
	const ask = (headers, method = 'GET', target = 'api/cluster') => new Promise((done, fail) => {
		http.request(url + target, {method, headers}, (response) => {
			response.resume();
			done(response.statusCode);
		}).on('error', fail).end();
	});
	assert.equal(await ask({}), 200);
	assert.equal(await ask({Host: 'rebound.example'}), 421);
	assert.equal(await ask({Origin: 'http://other.example'}), 403);
	assert.equal(await ask({Origin: 'null'}), 403);
	assert.equal(await ask({'Sec-Fetch-Site': 'cross-site'}), 403);
	assert.equal(await ask({Origin: 'http://other.example'}, 'POST', 'api/what-if'), 403);
	assert.equal(await ask({}, 'PUT'), 405);
}));

test('pinfold local is shown with the use of its CPUs, and follows a resize', {skip: os.cpus().length < 2}, async () => {
	const name = 'ui-' + process.pid, dir = path.join(work, 'local'), manifests = path.join(work, 'manifests');
	const local = (command, ...more) => execFileSync(pinfold, ['local', command, '--name', name, '--run-dir', dir, ...more], {stdio: 'pipe'});
	fs.mkdirSync(manifests);
	for (const file of ['cluster.yaml', 'namespaces.yaml', 'pods.yaml'])
		fs.copyFileSync(path.join(root, 'examples/local', file), path.join(manifests, file));
	const allowed = fs.readFileSync('/proc/self/status', 'utf8').match(/Cpus_allowed_list:\t(.*)/)[1];
	const cpus = execFileSync(pinfold, ['cpuset', '--format', 'list', allowed], {encoding: 'utf8'}).trim().split(',');
	const profile = (reserved, isolated) => fs.writeFileSync(path.join(manifests, 'profile.yaml'), `apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: ui}
spec:
  cpu: {reserved: "${reserved}", isolated: "${isolated}"}
  nodeSelector: {node-role.kubernetes.io/worker: ""}
`);
	profile(cpus[0], cpus[1]);
	local('up', '-d', manifests);
	const dashboard = await serve('--local', dir, '-f', manifests);
	try {
		const page = await open(dashboard.url + '#/node/' + os.hostname());
		await isLive(page);
		await page.getByText('The filled part of a CPU is how busy it is.').waitFor();
		await page.locator(`.cpu.management`, {hasText: cpus[0]}).waitFor();
		await page.getByRole('button', {name: /% busy/}).first().hover();
		assert.match(await page.locator('.detail').innerText(), /Use: \d+ % busy/);
		profile(cpus[1], cpus[0]);
		local('apply');
		await page.locator(`.cpu.management`, {hasText: cpus[1]}).waitFor({timeout: 10000});
		await page.getByRole('row', {name: /pool has other CPUs/}).first().waitFor();
		await page.goto(dashboard.url + '#/pod/platform/dns');
		await page.getByText(/Result: converted/).waitFor();
		await page.getByRole('row', {name: /management\.workload\.openshift\.io/}).first().waitFor();
		await shot(page, 'local-pod');
		await close(page);
	} finally {
		await dashboard.stop();
		spawnSync(pinfold, ['local', 'down', '--name', name, '--run-dir', dir]);
	}
});
