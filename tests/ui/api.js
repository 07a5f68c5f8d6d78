/* The API server of with-cluster as its administrator, and the objects that agents and the webhook would write. */

import assert from 'node:assert';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import {nodeObject, podObject, profileObject} from './objects.js';

export {partitionStatus} from './objects.js';

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
	await must('POST', '/apis/performance.openshift.io/v2/performanceprofiles', profileObject(name, role, cpu));
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

export async function node(name, role, status) {
	const created = await must('POST', '/api/v1/nodes', nodeObject(name, role));
	/* The API server adds a taint to a new node, which a controller removes when the node is ready. */
	await patch('/api/v1/nodes/' + name, {spec: {taints: null}});
	await must('POST', PARTITIONS, {apiVersion: 'pinfold.io/v1alpha1', kind: 'NodePartition', metadata: {name,
		ownerReferences: [{apiVersion: 'v1', kind: 'Node', name, uid: created.metadata.uid}]}});
	await patch(`${PARTITIONS}/${name}/status`, {status});
}

export const partition = (name, status) => patch(`${PARTITIONS}/${name}/status`, {status});

export async function pod(namespaceName, name, nodeName, kind, annotations = {}) {
	await must('POST', `/api/v1/namespaces/${namespaceName}/pods`, podObject(namespaceName, name, nodeName, kind, annotations));
	await patch(`/api/v1/namespaces/${namespaceName}/pods/${name}/status`, {status: {phase: 'Running'}});
}

export const removePod = (namespaceName, name) => must('DELETE', `/api/v1/namespaces/${namespaceName}/pods/${name}`, {gracePeriodSeconds: 0});

/* A token of a ServiceAccount, which is created if it is missing. */
export async function userToken(namespaceName, name) {
	await call('POST', `/api/v1/namespaces/${namespaceName}/serviceaccounts`, {metadata: {name}});
	return (await must('POST', `/api/v1/namespaces/${namespaceName}/serviceaccounts/${name}/token`, {spec: {expirationSeconds: 3600}})).status.token;
}

/* The ServiceAccount may list these in all namespaces. */
export async function mayList(namespaceName, name, rules) {
	const role = {metadata: {name: `ui-${name}`}, rules: rules.map(([group, resource]) => ({apiGroups: [group], resources: [resource], verbs: ['list']}))};
	await must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', role);
	await must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {metadata: role.metadata,
		roleRef: {apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role.metadata.name},
		subjects: [{kind: 'ServiceAccount', namespace: namespaceName, name}]});
}

export const mayNotList = (name) => must('DELETE', `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/ui-${name}`);

/* The requests of the dashboard so far: {verb, requestURI, ...}. */
export function requests() {
	const file = path.join(cluster, 'audit.log');
	return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : [];
}

/* How the API server reaches pods: each address is a port of this machine. Returns what stops it. */
export function reachPods(ports) {
	const server = http.createServer();
	server.on('connect', (request, client) => {
		const to = net.connect(ports[request.url] || 1, '127.0.0.1', () => {
			client.write('HTTP/1.1 200 OK\r\n\r\n');
			to.pipe(client).pipe(to);
		});
		to.on('error', () => client.destroy());
		client.on('error', () => to.destroy());
	});
	server.listen(path.join(cluster, 'egress.sock'));
	return () => server.close();
}

/* The pod of an agent, as the kubelet reports it. */
export async function agentPod(name, nodeName, podIP) {
	await must('POST', '/api/v1/namespaces/pinfold-agent/pods', {metadata: {name, labels: {'app.kubernetes.io/name': 'pinfold-agent'}},
		spec: {nodeName, hostNetwork: true, containers: [{name: 'agent', image: 'pinfold', ports: [{name: 'metrics', containerPort: 9465}]}]}});
	await patch(`/api/v1/namespaces/pinfold-agent/pods/${name}/status`, {status: {phase: 'Running', podIP, podIPs: [{ip: podIP}], hostIP: podIP}});
}
