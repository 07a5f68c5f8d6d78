/* 5,000 nodes of a real API server whose NodePartitions change all the time: how soon a change is shown, and what it costs. */

import assert from 'node:assert';
import fs from 'node:fs';
import test, {after, before} from 'node:test';
import {close, closeBrowser, computing, isLive, limit, open, serve, shot} from './lib.js';
import * as api from './api.js';

const NODES = Number(process.env.NODES || 5000), SECONDS = Number(process.env.SECONDS || 20), RATE = Number(process.env.RATE || 50);
const free = (n) => ({pools: [{name: 'guaranteed', containers: 24 - (n >> 1), exclusiveCPUs: n < 48 ? `${8 + n}-55` : '', freeCPUs: n}]});
let dashboard;

async function inParallel(n, width, fn) {
	let next = 0;
	await Promise.all([...Array(width).keys()].map(async () => {
		while (next < n)
			await fn(next++);
	}));
}

before(async () => {
	const began = Date.now();
	await api.allNodes();
	await api.profile('ran', 'worker', {reserved: '0-1,32-33', shared: '2-7,34-39', isolated: '8-31,40-63'});
	await inParallel(NODES, 12, (i) => api.node(`node-${i}`, 'worker', api.partitionStatus('ran')));
	console.log(`${NODES} nodes were created in ${((Date.now() - began) / 1000).toFixed(0)} s`);
	dashboard = await serve('--kubeconfig', api.kubeconfig);
});

after(async () => {
	await closeBrowser();
	assert.equal((await dashboard.stop()).code, 0);
});

const cpuMs = () => {
	const fields = fs.readFileSync(`/proc/${dashboard.pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
	return (Number(fields[11]) + Number(fields[12])) * 10;
};

test(`changes of ${NODES} nodes are shown while others go on`, async () => {
	const page = await open(dashboard.url);
	await isLive(page);
	await page.getByText(new RegExp(`^${NODES.toLocaleString('en')} nodes`)).waitFor({timeout: 120000});
	const measured = await computing(page), requests = api.requests().length, cpu = cpuMs(), times = [];
	const end = Date.now() + SECONDS * 1000;
	let changes = 0;
	/* Agents write at most every ten seconds: 5,000 of them that all have news are 500 changes a second. */
	const noise = inParallel(Infinity, 8, async () => {
		if (Date.now() > end)
			throw new Error('end');
		await api.partition(`node-${100 + changes++ % (NODES - 100)}`, free(2 * (changes % 24)));
		await new Promise((done) => setTimeout(done, 8000 / RATE));
	}).catch((e) => assert.equal(e.message, 'end'));
	for (let i = 0; Date.now() < end; i++) {
		const n = 2 * (i % 24) + 1, began = Date.now();
		await api.partition('node-3', free(n));
		await page.getByRole('link', {name: /^node-3 /}).getByText(`${n} of 48`).waitFor({timeout: 60000});
		times.push(Date.now() - began);
	}
	await noise;
	times.sort((a, b) => a - b);
	const each = await measured();
	console.log(`${changes} changes in ${SECONDS} s: one is shown after ${times[times.length >> 1]} ms (median of ${times.length}, with the write), ` +
		`${times[times.length - 1]} ms at most; the page computes ${(each / SECONDS).toFixed(0)} ms a second, the dashboard ` +
		`${((cpuMs() - cpu) / SECONDS).toFixed(0)} ms a second; ${api.requests().length - requests} requests to the API server`);
	assert.ok(times[times.length >> 1] < limit);
	/* This cluster has no feature gates: they are asked for from time to time. */
	assert.ok(api.requests().slice(requests).every((r) => r.verb === 'watch' || /featuregates/.test(r.requestURI)), 'no list is read again');
	await shot(page, 'live');
	const rss = fs.readFileSync(`/proc/${dashboard.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1];
	console.log(`the dashboard has ${(rss / 1024).toFixed(0)} MiB with ${NODES} nodes`);
	await close(page);
});
