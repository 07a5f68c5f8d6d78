/* The objects that agents, the webhook and kubelets write, for an API server and for bundles. */

export const now = () => new Date().toISOString().slice(0, 19) + 'Z';

/* 2 sockets, 4 caches, 32 cores with 2 threads each; CPU n and n + 32 are a core. */
export const topology = [0, 1, 2, 3].map((cache) => ({socket: cache >> 1, numaNode: cache >> 1, cache,
	cores: [...Array(8).keys()].map((i) => `${cache * 8 + i},${cache * 8 + i + 32}`).join(' ')}));

export function partitionStatus(profileName, {assignments = [], pending = [], ready = 'True', version = '0.2.0', time = now()} = {}) {
	const exclusive = assignments.map((a) => a.cpus).join(',');
	const n = assignments.reduce((sum, a) => sum + a.cpus.split(',').length, 0);
	return {agentVersion: version, source: 'Profile', profile: {name: profileName, generation: 1},
		cpus: {management: '0-1,32-33', shared: '2-7,34-39', guaranteed: '8-31,40-63', online: '0-63'},
		pools: [{name: 'management', containers: 6, requestedMillicores: 1200}, {name: 'shared', containers: 14, requestedMillicores: 5600},
			{name: 'guaranteed', containers: assignments.length, exclusiveCPUs: exclusive, freeCPUs: 48 - n}],
		topology, assignments, pending, counters: {},
		conditions: [{type: 'Ready', status: ready, reason: ready === 'True' ? 'Partitioned' : 'ResizeRefused',
			message: ready === 'True' ? '' : 'CPUs 8-9 are owned by ran/vdu-1', lastTransitionTime: time}]};
}

export const profileObject = (name, role, cpu) => ({apiVersion: 'performance.openshift.io/v2', kind: 'PerformanceProfile', metadata: {name},
	spec: {cpu, nodeSelector: {['node-role.kubernetes.io/' + role]: ''}}});

export const nodeObject = (name, role, time = now()) => ({apiVersion: 'v1', kind: 'Node',
	metadata: {name, labels: {['node-role.kubernetes.io/' + role]: '', 'kubernetes.io/hostname': name}},
	status: {allocatable: {cpu: '64', 'management.workload.openshift.io/cores': '4k'}, capacity: {cpu: '64', 'management.workload.openshift.io/cores': '4k'},
		conditions: [{type: 'Ready', status: 'True', reason: 'KubeletReady'},
			{type: 'PartitioningReady', status: 'True', reason: 'Partitioned', lastHeartbeatTime: time}]}});

/* A pod as it is stored; `kind` is management (converted), shared or guaranteed. */
export function podObject(namespace, name, nodeName, kind, annotations = {}) {
	const resources = {
		management: {requests: {'management.workload.openshift.io/cores': '200', memory: '64Mi'}, limits: {'management.workload.openshift.io/cores': '200'}},
		shared: {requests: {cpu: '400m', memory: '64Mi'}, limits: {cpu: '800m', memory: '64Mi'}},
		guaranteed: {requests: {cpu: '2', memory: '64Mi'}, limits: {cpu: '2', memory: '64Mi'}},
	}[kind];
	const own = kind === 'management' ? {'target.workload.openshift.io/management': '{"effect":"PreferredDuringScheduling"}',
		'resources.workload.openshift.io/main': '{"cpushares":204,"cpulimit":300}'} : {};
	return {apiVersion: 'v1', kind: 'Pod', metadata: {namespace, name, annotations: Object.assign(own, annotations)},
		spec: {nodeName, containers: [{name: 'main', image: 'example/image', resources}], terminationGracePeriodSeconds: 0}};
}
