/* 5,000 simulated nodes from a bundle: how fluid the list is, and what the dashboard takes. */

import assert from 'node:assert';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test, {after} from 'node:test';
import {writeBundle} from './bundle.js';
import {close, closeBrowser, computing, isLive, open, serve, shot, until} from './lib.js';

const NODES = Number(process.env.NODES || 5000), PODS_PER_NODE = 6, FEW = 120, FRAMES = 240;
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'pinfold-scale-'));
const dir = path.join(work, 'bundle');

after(async () => {
	await closeBrowser();
	fs.rmSync(work, {recursive: true});
});

function makeBundle(dir, n) {
	const now = new Date().toISOString().slice(0, 19) + 'Z';
	const lists = {};
	for (let from = 0; from < n; from += 1000) {
		const nodes = [], partitions = [], pods = [];
		for (let i = from; i < Math.min(n, from + 1000); i++) {
			const name = `node-${i}`;
			nodes.push({apiVersion: 'v1', kind: 'Node', metadata: {name, labels: {'node-role.kubernetes.io/worker': ''}}, status: {
				allocatable: {'management.workload.openshift.io/cores': '4k'}, conditions: [{type: 'Ready', status: 'True'},
					{type: 'PartitioningReady', status: 'True', lastHeartbeatTime: now}]}});
			partitions.push({apiVersion: 'pinfold.io/v1alpha1', kind: 'NodePartition', metadata: {name}, status: {agentVersion: '0.2.0', source: 'Profile',
				profile: {name: i % 3 ? 'ran' : 'core', generation: 1}, cpus: {management: '0-3', shared: '4-15', guaranteed: '16-63', online: '0-63'},
				pools: [{name: 'guaranteed', containers: i % 9, exclusiveCPUs: i % 9 ? `16-${15 + i % 9 * 2}` : '', freeCPUs: 48 - i % 9 * 2}],
				pending: i % 50 ? [] : [{what: 'Reboot', reason: 'FilesDiffer', message: 'kernel arguments', hash: 'ab'}],
				conditions: [{type: 'Ready', status: 'True', reason: 'Partitioned', message: '', lastTransitionTime: now}]}});
			for (let k = 0; k < PODS_PER_NODE; k++)
				pods.push({apiVersion: 'v1', kind: 'Pod', metadata: {namespace: 'shop', name: `web-${i}-${k}`, uid: `${i}-${k}`}, spec: {nodeName: name,
					containers: [{name: 'main', resources: {requests: {cpu: '100m'}}}]}, status: {phase: 'Running'}});
		}
		Object.assign(lists, {[`nodes-${from}`]: nodes, [`partitions-${from}`]: partitions, [`pods-${from}`]: pods});
	}
	writeBundle(dir, now, lists);
}

/* Scrolls through the whole list, a step each frame, with other tiles every time. Returns what the page's thread computes for a frame;
 * time between frames also has what other processes take. */
async function scroll(page) {
	const computed = await computing(page);
	const gaps = await page.evaluate(async (frames) => {
		const scroller = document.querySelector('.scroller'), list = [];
		let last = performance.now();
		for (let i = 0; i < frames; i++) {
			await new Promise(requestAnimationFrame);
			const start = performance.now();
			list.push(start - last);
			last = start;
			scroller.scrollTop = (scroller.scrollHeight - scroller.clientHeight) * (i % 2 ? i : frames - i) / frames;
		}
		return list.sort((a, b) => a - b);
	}, FRAMES);
	const at = (share) => gaps[Math.floor((gaps.length - 1) * share)].toFixed(1);
	console.log(`between frames ${at(0.5)} ms (median), ${at(0.95)} ms (95 %)`);
	return await computed() / FRAMES;
}

/* The same with as many nodes as fill a few screens. */
async function scrollFew() {
	const small = path.join(work, 'few');
	makeBundle(small, FEW);
	const dashboard = await serve('--bundle', small), page = await open(dashboard.url);
	await isLive(page);
	await page.getByText(new RegExp(`^${FEW} nodes`)).waitFor();
	const each = await scroll(page);
	await close(page);
	await dashboard.stop();
	return each;
}

test(`${NODES} nodes stay fluid`, async () => {
	makeBundle(dir, NODES);
	const dashboard = await serve('--bundle', dir);
	const page = await open(dashboard.url);
	await isLive(page);
	await page.getByText(new RegExp(`^${NODES.toLocaleString('en')} nodes`)).waitFor({timeout: 60000});
	assert.ok(await page.locator('.slot').count() < 100, 'only tiles in view exist');
	const each = await scroll(page), few = await scrollFew();
	console.log(`a frame takes ${each.toFixed(1)} ms of computing with ${NODES} nodes, ${few.toFixed(1)} ms with ${FEW}`);
	assert.ok(each < 1.5 * few, 'the cost of a frame does not depend on the number of nodes');
	await until('the last node', 20000, () => page.evaluate(() => {
		const scroller = document.querySelector('.scroller');
		scroller.scrollTop = scroller.scrollHeight;
		return document.querySelector('.tiles').innerText.includes('node-4999') || scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1;
	}));
	const typed = await page.evaluate(async () => {
		const input = document.querySelector('input[type=search]'), start = performance.now();
		input.value = 'node-49';
		input.dispatchEvent(new Event('input'));
		await new Promise(requestAnimationFrame);
		await new Promise(requestAnimationFrame);
		return performance.now() - start;
	});
	console.log(`a filter over ${NODES} nodes is applied after ${typed.toFixed(0)} ms`);
	await page.getByText(/, \d+ shown/).waitFor();
	await shot(page, 'scale');
	const rss = fs.readFileSync(`/proc/${dashboard.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1];
	console.log(`the dashboard has ${(rss / 1024).toFixed(0)} MiB, with the documents of the bundle`);
	await close(page);
	assert.equal((await dashboard.stop()).code, 0);
});
