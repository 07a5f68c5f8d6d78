/* What the pages look like, at three widths and in both themes, compared with the pictures in tests/ui/looks. The data is a bundle,
 * the font and the time zone are fixed, and nothing moves. UPDATE=1 (tests/ui/run --update) replaces the pictures; review them
 * before they are committed. */

import assert from 'node:assert';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test, {after, before} from 'node:test';
import {writeBundle} from './bundle.js';
import {accessible, close, closeBrowser, isLive, open, root, serve, shots} from './lib.js';
import {nodeObject, partitionStatus, podObject, profileObject} from './objects.js';
import {compare, decode, encode, halve} from './picture.js';

const kept = path.join(root, 'tests/ui/looks'), seen = path.join(shots, 'looks');
const TIME = '2026-03-01T12:00:00Z';
const LIMIT = 14; /* of compare(): a digit that differs has more, see the last test */
const WIDTHS = [320, 1280, 2560], HEIGHTS = {320: 720, 1280: 900, 2560: 1200};

const work = fs.mkdtempSync(path.join(os.tmpdir(), 'pinfold-looks-'));
let dashboard;

function objects() {
	const pods = [], nodes = [], partitions = [];
	const running = (pod) => {
		pod.metadata.uid = String(pods.length);
		pods.push(Object.assign(pod, {status: {phase: 'Running'}}));
	};
	for (let i = 0; i < 14; i++) {
		const name = `edge-${i}`, own = (k) => ({namespace: 'ran', pod: `vdu-${i}-${k}`, container: 'main', cpus: `${8 + k},${40 + k}`});
		const assignments = [...Array(i % 5 * 2).keys()].map(own);
		nodes.push(nodeObject(name, 'worker', TIME));
		partitions.push({apiVersion: 'pinfold.io/v1alpha1', kind: 'NodePartition', metadata: {name}, status: partitionStatus('ran', {assignments, time: TIME,
			ready: i === 5 ? 'False' : 'True',
			pending: i === 3 ? [{what: 'Reboot', reason: 'FilesDiffer', message: 'kernel arguments differ from the profile', hash: 'ab12'}] : []})});
		running(podObject('platform', `dns-${i}`, name, 'management'));
		running(podObject('platform', `network-${i}`, name, 'management'));
		running(podObject('shop', `web-${i}`, name, 'shared'));
		assignments.forEach((a) => running(podObject('ran', a.pod, name, 'guaranteed')));
	}
	return {nodes, partitions, pods, profiles: [profileObject('ran', 'worker', {reserved: '0-1,32-33', shared: '2-7,34-39', isolated: '8-31,40-63'})],
		infrastructures: [{apiVersion: 'config.openshift.io/v1', kind: 'Infrastructure', metadata: {name: 'cluster'}, status: {cpuPartitioning: 'AllNodes'}}],
		namespaces: [{apiVersion: 'v1', kind: 'Namespace', metadata: {name: 'platform', annotations: {'workload.openshift.io/allowed': 'management'}}},
			...['ran', 'shop'].map((name) => ({apiVersion: 'v1', kind: 'Namespace', metadata: {name}}))]};
}

before(async () => {
	writeBundle(path.join(work, 'bundle'), TIME, objects());
	dashboard = await serve('--bundle', path.join(work, 'bundle'));
	fs.mkdirSync(kept, {recursive: true});
	fs.mkdirSync(seen, {recursive: true});
});

after(async () => {
	await closeBrowser();
	assert.equal((await dashboard.stop()).code, 0);
	fs.rmSync(work, {recursive: true});
});

const views = {
	nodes: ['#/cluster', '.tile', () => {}],
	node: ['#/node/edge-2', '.cpu.owned', async (page) => {
		await page.getByRole('button', {name: /^CPU 8,/}).click();
		await page.evaluate(() => document.activeElement.blur());
		await page.mouse.move(0, 0);
	}],
	pods: ['#/pods', 'td a', () => {}],
	pod: ['#/pod/platform/dns-1', '.chain li', () => {}],
	whatif: ['#/whatif/edge-2', '.map .cpu', async (page) => {
		const editor = page.locator('textarea');
		await editor.fill((await editor.inputValue()).replace('0-1,32-33', '0-3,32-35').replace('2-7,34-39', '4-7,36-39'));
		await page.getByText(/^4 CPUs change pool/).waitFor();
		await page.evaluate(() => document.activeElement.blur());
	}],
};

async function look(page, name) {
	await page.evaluate(() => document.fonts.ready);
	const png = await page.screenshot({animations: 'disabled', caret: 'hide', fullPage: true});
	fs.writeFileSync(path.join(seen, name + '.png'), png);
	return halve(page, png);
}

for (const theme of ['light', 'dark'])
	for (const width of WIDTHS)
		for (const [view, [hash, ready, prepare]] of Object.entries(views))
			test(`${view} at ${width} px, ${theme}`, async () => {
				const page = await open(dashboard.url + hash, {width, height: HEIGHTS[width], theme, reducedMotion: 'reduce'});
				await isLive(page);
				await page.locator(ready).first().waitFor();
				await prepare(page);
				assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'nothing is wider than the page');
				const name = `${view}-${width}-${theme}`, file = path.join(kept, name + '.png'), now = await look(page, name);
				if (process.env.UPDATE) {
					fs.writeFileSync(file, encode(now));
				} else {
					assert.ok(fs.existsSync(file), `${file} is missing: tests/ui/run --update looks`);
					const {difference, x, y, size} = compare(decode(fs.readFileSync(file)), now);
					assert.ok(difference < LIMIT, `${name} differs from ${path.relative(root, file)} at ${x}, ${y}` +
						` (${size || difference.toFixed(1)}): see build/ui/looks/${name}.png; tests/ui/run --update looks replaces it`);
				}
				if (width === 1280)
					await accessible(page, name);
				await close(page);
			});

/* The comparison is worth nothing if it accepts this. */
test('another digit, another colour and a line that moved are found', async () => {
	const page = await open(dashboard.url + '#/node/edge-2', {reducedMotion: 'reduce'});
	await isLive(page);
	await page.locator('.cpu.owned').first().waitFor();
	const same = await look(page, 'sensitivity'), again = decode(encode(same));
	const differs = async (change, undo) => {
		await page.evaluate(change);
		const {difference} = compare(again, await look(page, 'sensitivity'));
		await page.evaluate(undo);
		return difference;
	};
	const itself = compare(again, same).difference;
	const digit = await differs(() => { document.querySelector('.cpu .number').textContent = '8'; },
		() => { document.querySelector('.cpu .number').textContent = '0'; });
	const colour = await differs(() => document.querySelector('.cpu').classList.replace('management', 'shared'),
		() => document.querySelector('.cpu').classList.replace('shared', 'management'));
	const moved = await differs(() => { document.querySelector('.summary').style.paddingTop = '4px'; },
		() => { document.querySelector('.summary').style.paddingTop = ''; });
	console.log(`differences: the palette ${itself.toFixed(1)}, a digit ${digit.toFixed(1)}, a colour ${colour.toFixed(1)}, 4 px ${moved.toFixed(1)}`);
	assert.ok(itself < LIMIT / 2);
	assert.ok(digit > LIMIT && colour > LIMIT && moved > LIMIT);
	await close(page);
});
