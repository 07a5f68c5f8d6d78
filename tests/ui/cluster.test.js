/* Every view with the objects of a real API server, read with the permissions of deploy/dashboard. */

import assert from 'node:assert';
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test, {after, before} from 'node:test';
import {accessible, close, closeBrowser, freePort, isLive, limit, open, pinfold, serve, shot, until} from './lib.js';
import * as api from './api.js';

const hostile = '<img src=x onerror=alert(1)><script>alert(2)</script>';
let dashboard;

before(async () => {
	await api.allNodes();
	await api.profile('ran', 'worker', {reserved: '0-1,32-33', shared: '2-7,34-39', isolated: '8-31,40-63'});
	await api.namespace('platform', {'workload.openshift.io/allowed': 'management'});
	await api.namespace('ran');
	await api.namespace('shop');
	for (let i = 0; i < 12; i++) {
		const assignments = i < 8 ? [{namespace: 'ran', pod: `vdu-${i}`, container: 'main', cpus: '8,40'}] : [];
		await api.node(`edge-${i}`, 'worker', api.partitionStatus('ran', {assignments, ready: i === 5 ? 'False' : 'True',
			pending: i === 3 ? [{what: 'Reboot', reason: 'FilesDiffer', message: 'kernel arguments differ from the profile', hash: 'ab12'}] : []}));
		await api.pod('platform', `dns-${i}`, `edge-${i}`, 'management');
		await api.pod('shop', `web-${i}`, `edge-${i}`, 'shared');
		if (assignments.length)
			await api.pod('ran', `vdu-${i}`, `edge-${i}`, 'guaranteed');
	}
	await api.pod('shop', 'skipped', 'edge-0', 'shared', {'workload.openshift.io/warning': hostile});
	dashboard = await serve('--kubeconfig', api.kubeconfig);
});

after(async () => {
	await closeBrowser();
	const {code, log} = await dashboard.stop();
	assert.equal(code, 0);
	assert.ok(!/may not read/.test(log), log);
});

test('the list has every node with its pools, what waits, and findings', async () => {
	const page = await open(dashboard.url, {bypassCSP: false});
	await isLive(page);
	await page.getByText(/^12 nodes · 33 pods/).waitFor();
	await page.getByText('1 node waits for a reboot').waitFor();
	assert.match(await page.getByRole('link', {name: /^edge-3/}).innerText(), /waits for a reboot/);
	assert.match(await page.getByRole('link', {name: /^edge-5/}).innerText(), /finding/);
	assert.match(await page.getByRole('link', {name: /^edge-9/}).innerText(), /as configured/);
	await page.getByLabel('Show').selectOption('reboot');
	await until('one tile', 5000, async () => await page.locator('.slot:not([hidden])').count() === 1);
	await page.reload();
	await until('the filter is part of the address', 5000, async () => await page.locator('.slot:not([hidden])').count() === 1);
	await page.getByLabel('Show').selectOption('all');
	await page.getByLabel('Name or profile').fill('edge-1');
	await until('three tiles', 5000, async () => await page.locator('.slot:not([hidden])').count() === 3);
	await close(page);
});

test('a node has cores and caches, and the CPUs of its containers', async () => {
	const page = await open(dashboard.url + '#/node/edge-2');
	await page.locator('.cpu.owned').first().waitFor();
	assert.equal(await page.locator('.map .cpu').count(), 64);
	assert.equal(await page.locator('.map .cache').count(), 4);
	assert.equal(await page.locator('.map .core').count(), 32);
	await page.getByRole('button', {name: /^CPU 8, guaranteed pool, owned by ran\/vdu-2, container main/}).hover();
	assert.match(await page.locator('.detail').innerText(), /2048 shares, no quota/);
	await page.getByRole('button', {name: /^CPU 0, management pool/}).hover();
	assert.match(await page.locator('.detail').innerText(), /platform\/dns-2[^]*204 shares, quota 30000/);
	await close(page);
});

test('a started container is shown within a second, also its CPUs, and the history says why', async () => {
	const page = await open(dashboard.url + '#/node/edge-9');
	await isLive(page);
	await page.locator('.map .cpu').first().waitFor();
	await page.waitForTimeout(500);
	let began = Date.now();
	await api.pod('ran', 'late', 'edge-9', 'guaranteed');
	await page.getByRole('link', {name: 'ran/late'}).first().waitFor({timeout: 10000});
	console.log(`a started pod was shown after ${Date.now() - began} ms, with the two writes of the test`);
	assert.ok(Date.now() - began < limit, `${Date.now() - began} ms`);
	began = Date.now();
	await api.partition('edge-9', {assignments: [{namespace: 'ran', pod: 'late', container: 'main', cpus: '9,41'}]});
	await page.locator('.cpu.owned', {hasText: '41'}).waitFor({timeout: 10000});
	console.log(`assigned CPUs were shown after ${Date.now() - began} ms`);
	assert.ok(Date.now() - began < limit, `${Date.now() - began} ms`);
	await page.getByRole('row', {name: /ran\/late.*assigned other exclusive CPUs/}).waitFor();
	/* Before the profile was changed. */
	await page.waitForTimeout(1200);
	const changed = Date.now();
	await api.partition('edge-9', {cpus: {management: '0-3,32-35', shared: '4-7,36-39'}});
	await page.getByRole('row', {name: /the profile gives the pool other CPUs/}).first().waitFor();
	await until('eight management CPUs', 5000, async () => await page.locator('.cpu.management').count() === 9); /* one is the legend's */
	await page.waitForTimeout(1200);
	await page.locator('#time').fill(String(3600 - Math.ceil((Date.now() - changed) / 1000) - 1));
	await until('four management CPUs before', 5000, async () => await page.locator('.cpu.management').count() === 5);
	await api.removePod('ran', 'late');
	await page.getByRole('button', {name: 'Now', exact: true}).click();
	await page.getByRole('row', {name: /its exclusive CPUs are free again/}).waitFor();
	await close(page);
});

test('a pod has the chain of rules, the patch and where it runs; hostile annotations are text', async () => {
	const page = await open(dashboard.url + '#/pod/platform/dns-1', {bypassCSP: false});
	page.on('dialog', (dialog) => page.faults.push('a dialog: ' + dialog.message()));
	await page.getByText(/converted at admission/).waitFor();
	assert.ok(await page.locator('.chain li').count() > 3);
	await page.getByRole('link', {name: 'edge-1'}).first().waitFor();
	await page.goto(dashboard.url + '#/pod/shop/skipped');
	await page.getByText(/skipped at admission/).waitFor();
	assert.ok((await page.locator('main').innerText()).includes(hostile));
	assert.equal(await page.locator('main img, main script').count(), 0);
	await page.goto(dashboard.url + '#/pods?text=ran/vdu');
	await page.getByText('8 pods').waitFor();
	await page.goto(dashboard.url + '#/pod/shop/none');
	await page.getByText('This pod does not exist (any more).').waitFor();
	page.faults = page.faults.filter((fault) => !/404/.test(fault));
	await close(page);
});

test('what if uses the profile of the cluster, and counts the nodes that it selects', async () => {
	const page = await open(dashboard.url + '#/whatif/edge-2');
	const editor = page.locator('textarea');
	await until('the profile', 10000, async () => (await editor.inputValue()).includes('name: ran'));
	const present = await editor.inputValue();
	assert.ok(!present.includes('managedFields') && !present.includes('status'));
	await editor.fill(present.replace('0-1,32-33', '0-3,32-35').replace('2-7,34-39', '4-7,36-39'));
	await page.getByText(/^4 CPUs change pool, 0 pods no longer fit; the profile selects 12 nodes/).waitFor();
	await page.getByRole('row', {name: /platform\/dns-2.*moves to the new management CPUs/}).waitFor();
	const profile = JSON.parse((await api.call('GET', '/apis/performance.openshift.io/v2/performanceprofiles/ran')).text);
	assert.equal(profile.spec.cpu.reserved, '0-1,32-33');
	assert.equal(profile.metadata.generation, 1);
	await close(page);
});

test('a pod is followed to the node on which it is created again', async () => {
	const page = await open(dashboard.url + '#/node/edge-7');
	await page.getByRole('button', {name: /^CPU 8,.*ran\/vdu-7/}).click();
	await page.getByText('Following ran/vdu-7').waitFor();
	assert.equal(await page.locator('.map .marked').count(), 2);
	await api.removePod('ran', 'vdu-7');
	await api.partition('edge-7', {assignments: []});
	await page.getByText('which no longer exists').waitFor();
	await api.pod('ran', 'vdu-7', 'edge-10', 'guaranteed');
	await api.partition('edge-10', {assignments: [{namespace: 'ran', pod: 'vdu-7', container: 'main', cpus: '10,42'}]});
	await page.reload();
	await page.getByText('Following ran/vdu-7, which runs on edge-10 now').waitFor();
	await page.getByRole('link', {name: 'edge-10', exact: true}).click();
	await page.getByRole('heading', {name: 'Node edge-10'}).waitFor();
	await until('its CPUs there', 10000, async () => await page.locator('.map .marked').count() === 2);
	page.faults = page.faults.filter((fault) => !/404/.test(fault)); /* the pod while it did not exist */
	await close(page);
});

test('the use of CPUs comes from the agent of the node, while its page is open', async () => {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'pinfold-agent-')), port = await freePort();
	const agent = spawn(pinfold, ['agent', '--run-dir', dir, '--nri-socket', path.join(dir, 'nri.sock'), '--listen', `127.0.0.1:${port}`,
		'--topology', 'pack:1 core:4 pu:2', '--management', '0-1', '--shared', '2-3', '--guaranteed', '4-7'], {stdio: 'ignore'});
	const stop = api.reachPods({'10.77.0.4:9465': port});
	try {
		await api.agentPod('pinfold-agent-4', 'edge-4', '10.77.0.4');
		await api.agentPod('pinfold-agent-6', 'edge-6', '10.77.0.6');
		const page = await open(dashboard.url + '#/node/edge-4');
		await page.getByRole('button', {name: /^CPU 0,.*% busy/}).hover({timeout: 60000});
		assert.match(await page.locator('.detail').innerText(), /Use: \d+ % busy/);
		await page.getByText('The filled part of a CPU is how busy it is.').waitFor();
		await page.goto(dashboard.url + '#/node/edge-8');
		await page.getByRole('button', {name: /^CPU 0,/}).hover();
		await page.getByText('not measured, because no agent runs on the node as a pod').waitFor();
		/* Its port cannot be reached. */
		await page.goto(dashboard.url + '#/node/edge-6');
		await page.getByRole('button', {name: /^CPU 0,/}).hover();
		await page.getByText(/not measured, because the API server responded 5/).waitFor({timeout: 60000});
		await page.goto(dashboard.url + '#/cluster');
		await page.waitForTimeout(17000);
		const before = api.requests().length;
		await page.waitForTimeout(6000);
		assert.equal(api.requests().slice(before).filter((r) => /proxy/.test(r.requestURI)).length, 0, 'nothing is measured whose page is closed');
		await close(page);
	} finally {
		stop();
		agent.kill();
		fs.rmSync(dir, {recursive: true});
	}
});

/* Without a page and with one: only watches stay open, and each is opened again after minutes. The collection of feature gates, which
 * this cluster does not have, is asked for once a minute. */
test('in steady state the API server has hardly a request', async () => {
	const SECONDS = Number(process.env.STEADY || 40);
	const page = await open(dashboard.url);
	await isLive(page);
	const all = api.requests();
	assert.ok(all.every((r) => ['get', 'list', 'watch'].includes(r.verb)), 'only reads');
	await page.waitForTimeout(SECONDS * 1000);
	const more = api.requests().slice(all.length);
	console.log(`${all.length} requests so far; ${more.length} in ${SECONDS} s with a page open: ${more.map((r) => r.verb + ' ' + r.requestURI).join('; ') || 'none'}`);
	assert.ok(more.filter((r) => r.verb !== 'watch').length <= 1);
	assert.ok(more.length <= 7);
	await close(page);
});

test('with --user-tokens the API server decides who may look', async () => {
	const users = await serve('--kubeconfig', api.kubeconfig, '--user-tokens');
	const kinds = [['', 'nodes'], ['', 'pods'], ['pinfold.io', 'nodepartitions'], ['performance.openshift.io', 'performanceprofiles']];
	const [allowed, narrow] = [await api.userToken('shop', 'allowed'), await api.userToken('shop', 'narrow')];
	await api.mayList('shop', 'allowed', kinds);
	await api.mayList('shop', 'narrow', kinds.slice(0, 1));
	const ask = async (target, token) => (await fetch(users.url + target, {headers: token ? {Authorization: 'Bearer ' + token} : {}})).status;
	assert.equal(await ask('api/cluster'), 401);
	assert.equal(await ask('api/session'), 401);
	assert.equal(await ask('api/session', 'not a token of this cluster'), 403);
	assert.equal(await ask('api/session', narrow), 403);
	assert.equal(await ask('api/cluster', narrow), 401);
	assert.equal(await ask('api/cluster', allowed), 401, 'not before it was reviewed');
	assert.equal(await ask('api/session', allowed), 200);
	assert.equal(await ask('api/cluster', allowed), 200);
	const page = await open(users.url);
	await page.getByText('This dashboard asks for the token of a user of the cluster').waitFor();
	await page.getByLabel('Token').fill(narrow);
	await page.getByRole('button', {name: 'Continue'}).click();
	await page.getByText('user system:serviceaccount:shop:narrow may not list pods in all namespaces').waitFor();
	await accessible(page, 'a refused user');
	await page.getByLabel('Token').fill(allowed);
	await page.getByRole('button', {name: 'Continue'}).click();
	await page.locator('.tile').first().waitFor();
	await isLive(page);
	/* A permission that is taken away ends the stream, when the decision is renewed. */
	await api.mayNotList('allowed');
	await until('the review refuses', 30000, async () => await ask('api/session', allowed) === 403);
	await page.getByText('may not list nodes in all namespaces').waitFor({timeout: 30000});
	page.faults.length = 0; /* the browser reports each 401 and 403 */
	await close(page);
	assert.equal((await users.stop()).code, 0);
});

test('every view is accessible, and nothing is wider than the page', async () => {
	for (const [width, theme, check] of [[1280, 'light', true], [1280, 'dark', false], [320, 'light', true]]) {
		const page = await open(dashboard.url, {width, theme});
		await isLive(page);
		for (const [name, hash, ready] of [['nodes', '#/cluster', '.tile'], ['node', '#/node/edge-2', '.cpu.owned'],
			['pods', '#/pods', 'td a'], ['pod', '#/pod/platform/dns-1', '.chain li'], ['whatif', '#/whatif/edge-2', '.map .cpu']]) {
			await page.goto(dashboard.url + hash);
			await page.locator(ready).first().waitFor();
			if (name === 'node')
				await page.getByRole('button', {name: /^CPU 8,/}).click();
			if (name === 'whatif') {
				const editor = page.locator('textarea');
				await editor.fill((await editor.inputValue()).replace('0-1,32-33', '0-3,32-35').replace('2-7,34-39', '4-7,36-39'));
				await page.getByText(/^4 CPUs change pool/).waitFor();
			}
			await page.waitForTimeout(150);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${name} at ${width}`);
			await shot(page, `${name}-${width}-${theme}`);
			if (check)
				await accessible(page, `${name} at ${width}, ${theme}`);
		}
		await close(page);
	}
});
