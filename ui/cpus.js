/* CPU lists as the kernel writes them: "0-3,8". */

export function parse(list) {
	const cpus = [];
	for (const part of (list || '').split(',')) {
		if (!part)
			continue;
		const [first, last] = part.split('-').map(Number);
		for (let cpu = first; cpu <= (last === undefined ? first : last); cpu++)
			cpus.push(cpu);
	}
	return cpus;
}

export function count(list) {
	let n = 0;
	for (const part of (list || '').split(',')) {
		if (!part)
			continue;
		const [first, last] = part.split('-').map(Number);
		n += last === undefined ? 1 : last - first + 1;
	}
	return n;
}

export const pools = ['management', 'shared', 'guaranteed'];

/* The pool of each CPU: in classic mode the lists overlap, and a CPU that is not assigned is shared. */
export function byCpu(lists) {
	const map = new Map();
	for (const cpu of parse(lists.guaranteed))
		map.set(cpu, 'guaranteed');
	for (const cpu of parse(lists.shared))
		map.set(cpu, 'shared');
	for (const cpu of parse(lists.management))
		map.set(cpu, 'management');
	return map;
}
