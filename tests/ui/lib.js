/* Starts dashboards and a browser for the tests. Every test fails on an error of the page: an exception, a refused
 * resource (the Content-Security-Policy), or a request that leaves the dashboard. */

import assert from 'node:assert';
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');
export const pinfold = process.env.PINFOLD || path.join(root, 'build/pinfold');
export const shots = process.env.SHOTS || path.join(root, 'build/ui');
/* The packages are not below the sources: tests/ui/run keeps them in a cache. */
const require = createRequire(path.join(process.env.UI_MODULES || path.join(os.homedir(), '.cache/pinfold/ui'), 'package.json'));
const {chromium} = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/* How soon a change has to be shown. A second is the goal; only STRICT=1, on a machine that does nothing else, insists on it. */
export const limit = process.env.STRICT ? 1000 : 15000;

fs.mkdirSync(shots, {recursive: true});

/* A dashboard at a port of its own; stop() ends it and returns its log. */
export async function serve(...options) {
	const child = spawn(pinfold, ['dashboard', '--listen', '127.0.0.1:0', ...options], {stdio: ['ignore', 'pipe', 'pipe']});
	let out = '', log = '';
	child.stderr.on('data', (data) => { log += data; });
	const url = await new Promise((done, fail) => {
		child.stdout.on('data', (data) => {
			out += data;
			if (out.includes('\n'))
				done(out.trim());
		});
		child.on('exit', (code) => fail(new Error(`the dashboard ended with ${code}: ${log}`)));
	});
	child.removeAllListeners('exit');
	return {url, pid: child.pid, log: () => log, stop: () => new Promise((done) => {
		child.on('exit', (code) => done({code, log}));
		child.kill('SIGTERM');
	})};
}

/* A port that is free at the moment. */
export const freePort = () => new Promise((done) => {
	const server = net.createServer().listen(0, '127.0.0.1', () => {
		const {port} = server.address();
		server.close(() => done(port));
	});
});

let browser = null;

export async function open(url, {width = 1280, height = 900, theme = 'light', bypassCSP = true, reducedMotion = 'no-preference'} = {}) {
	browser = browser || await chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
		args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic', '--no-first-run',
			'--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-lcd-text',
			'--font-render-hinting=none', '--force-color-profile=srgb', '--hide-scrollbars'],
		env: Object.assign({}, process.env, {FONTCONFIG_FILE: path.join(root, 'tests/ui/fonts.conf')})});
	const context = await browser.newContext({viewport: {width, height}, colorScheme: theme, bypassCSP, reducedMotion,
		timezoneId: 'UTC', locale: 'en-GB'});
	const page = await context.newPage();
	const origin = new URL(url).origin;
	page.faults = [];
	page.on('pageerror', (error) => page.faults.push(String(error.stack || error)));
	page.on('console', (message) => message.type() === 'error' && page.faults.push(message.text()));
	page.on('request', (request) => {
		if (!request.url().startsWith(origin) && !request.url().startsWith('blob:'))
			page.faults.push('a request to ' + request.url());
	});
	await page.goto(url);
	return page;
}

/* What the page's thread computes from now on, in ms of CPU time: other processes do not count. */
export async function computing(page) {
	const cdp = await page.context().newCDPSession(page);
	await cdp.send('Performance.enable', {timeDomain: 'threadTicks'});
	const read = async () => (await cdp.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration').value * 1000;
	const before = await read();
	return async () => await read() - before;
}

export async function close(page) {
	assert.deepEqual(page.faults, []);
	await page.context().close();
}

export async function closeBrowser() {
	if (browser)
		await browser.close();
	browser = null;
}

export async function isLive(page) {
	await page.locator('.link.live').waitFor({timeout: 60000});
}

/* Every rule of axe-core, also those of best practices. */
export async function accessible(page, name) {
	await page.evaluate(axe);
	const result = await page.evaluate(() => axe.run());
	assert.deepEqual(result.violations.map((v) => `${name}: ${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`), []);
}

export async function shot(page, name) {
	await page.screenshot({path: path.join(shots, name + '.png')});
}

/* Polls until the function returns something true. */
export async function until(what, limit, fn) {
	for (const end = Date.now() + limit; ;) {
		const value = await fn();
		if (value)
			return value;
		assert.ok(Date.now() < end, what);
		await new Promise((done) => setTimeout(done, 20));
	}
}
