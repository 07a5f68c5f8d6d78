/* The API server of with-cluster as its administrator, and the objects that agents and the webhook would write. */

import assert from 'node:assert';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';

export const cluster = process.env.CLUSTER;
export const kubeconfig = path.join(cluster, 'dashboard.kubeconfig');
const port = Number(fs.readFileSync(path.join(cluster, 'port'), 'utf8'));
const read = (name) => fs.readFileSync(path.join(cluster, 'pki', name));
const agent = new https.Agent({keepAlive: true, maxSockets: 16, ca: read('ca.crt'), cert: read('admin.crt'), key: read('admin.key')});

export function call(method, target, body, type = 'application/json') {
	return new Promise((done, fail) => {
		/* Node.js frames the body of a DELETE only with a length. */
		const data = body === undefined ? '' : JSON.stringify(body);
		const headers = data ? {'Content-Type': type, 'Content-Length': Buffer.byteLength(data)} : {};
		const request = https.request({host: '127.0.0.1', port, method, path: target, agent, headers}, (response) => {
			let text = '';
			response.on('data', (piece) => { text += piece; });
			response.on('end', () => done({status: response.statusCode, text}));
		});
		request.on('error', fail);
		request.end(data || undefined);
	});
}

export async function must(method, target, body, type) {
	const {status, text} = await call(method, target, body, type);
	assert.ok(status < 300, `${method} ${target}: ${status} ${text.slice(0, 300)}`);
	return JSON.parse(text);
}

const MERGE = 'application/merge-patch+json';
const PARTITIONS = '/apis/pinfold.io/v1alpha1/nodepartitions';

export const patch = (target, body) => must('PATCH', target, body, MERGE);

export async function profile(name, role, cpu) {
	await must('POST', '/apis/performance.openshift.io/v2/performanceprofiles', {apiVersion: 'performance.openshift.io/v2',
		kind: 'PerformanceProfile', metadata: {name}, spec: {cpu, nodeSelector: {['node-role.kubernetes.io/' + role]: ''}}});
}

export async function namespace(name, annotations) {
	await must('POST', '/api/v1/namespaces', {metadata: {name, annotations}});
	await must('POST', `/api/v1/namespaces/${name}/serviceaccounts`, {metadata: {name: 'default'}});
}

export async function allNodes() {
	await must('POST', '/apis/config.openshift.io/v1/infrastructures', {apiVersion: 'config.openshift.io/v1', kind: 'Infrastructure',
		metadata: {name: 'cluster'}, spec: {}});
	await patch('/apis/config.openshift.io/v1/infrastructures/cluster/status', {status: {cpuPartitioning: 'AllNodes'}});
}

const now = () => new Date().toISOString().slice(0, 19) + 'Z';

/* 2 sockets, 4 caches, 32 cores with 2 threads each; CPU n and n + 32 are a core. */
export const topology = [0, 1, 2, 3].map((cache) => ({socket: cache >> 1, numaNode: cache >> 1, cache,
	cores: [...Array(8).keys()].map((i) => `${cache * 8 + i},${cache * 8 + i + 32}`).join(' ')}));

export function partitionStatus(profileName, {assignments = [], pending = [], ready = 'True', version = '0.2.0'} = {}) {
	const exclusive = assignments.map((a) => a.cpus).join(',');
	const n = assignments.reduce((sum, a) => sum + a.cpus.split(',').length, 0);
	return {agentVersion: version, source: 'Profile', profile: {name: profileName, generation: 1},
		cpus: {management: '0-1,32-33', shared: '2-7,34-39', guaranteed: '8-31,40-63', online: '0-63'},
		pools: [{name: 'management', containers: 6, requestedMillicores: 1200}, {name: 'shared', containers: 14, requestedMillicores: 5600},
			{name: 'guaranteed', containers: assignments.length, exclusiveCPUs: exclusive, freeCPUs: 48 - n}],
		topology, assignments, pending, counters: {},
		conditions: [{type: 'Ready', status: ready, reason: ready === 'True' ? 'Partitioned' : 'ResizeRefused',
			message: ready === 'True' ? '' : 'CPUs 8-9 are owned by ran/vdu-1', lastTransitionTime: now()}]};
}

export async function node(name, role, status) {
	const created = await must('POST', '/api/v1/nodes', {metadata: {name, labels: {['node-role.kubernetes.io/' + role]: '', 'kubernetes.io/hostname': name}},
		status: {allocatable: {cpu: '64', 'management.workload.openshift.io/cores': '4k'}, capacity: {cpu: '64', 'management.workload.openshift.io/cores': '4k'},
			conditions: [{type: 'Ready', status: 'True', reason: 'KubeletReady'},
				{type: 'PartitioningReady', status: 'True', reason: 'Partitioned', lastHeartbeatTime: now()}]}});
	/* The API server adds a taint to a new node, which a controller removes when the node is ready. */
	await patch('/api/v1/nodes/' + name, {spec: {taints: null}});
	await must('POST', PARTITIONS, {apiVersion: 'pinfold.io/v1alpha1', kind: 'NodePartition', metadata: {name,
		ownerReferences: [{apiVersion: 'v1', kind: 'Node', name, uid: created.metadata.uid}]}});
	await patch(`${PARTITIONS}/${name}/status`, {status});
}

export const partition = (name, status) => patch(`${PARTITIONS}/${name}/status`, {status});

/* A pod as it is stored; `kind` is management (converted), shared or guaranteed. */
export async function pod(namespaceName, name, nodeName, kind, annotations = {}) {
	const resources = {
		management: {requests: {'management.workload.openshift.io/cores': '200', memory: '64Mi'}, limits: {'management.workload.openshift.io/cores': '200'}},
		shared: {requests: {cpu: '400m', memory: '64Mi'}, limits: {cpu: '800m', memory: '64Mi'}},
		guaranteed: {requests: {cpu: '2', memory: '64Mi'}, limits: {cpu: '2', memory: '64Mi'}},
	}[kind];
	const own = kind === 'management' ? {'target.workload.openshift.io/management': '{"effect":"PreferredDuringScheduling"}',
		'resources.workload.openshift.io/main': '{"cpushares":204,"cpulimit":300}'} : {};
	await must('POST', `/api/v1/namespaces/${namespaceName}/pods`, {metadata: {name, annotations: Object.assign(own, annotations)},
		spec: {nodeName, containers: [{name: 'main', image: 'example/image', resources}], terminationGracePeriodSeconds: 0}});
	await patch(`/api/v1/namespaces/${namespaceName}/pods/${name}/status`, {status: {phase: 'Running'}});
}

export const removePod = (namespaceName, name) => must('DELETE', `/api/v1/namespaces/${namespaceName}/pods/${name}`, {gracePeriodSeconds: 0});
