/* Writes a bundle of objects, for `pinfold dashboard --bundle`. */

import fs from 'node:fs';
import path from 'node:path';

export function writeBundle(dir, created, lists) {
	fs.mkdirSync(path.join(dir, 'objects'), {recursive: true});
	fs.writeFileSync(path.join(dir, 'index.json'), JSON.stringify({kind: 'SupportBundle', apiVersion: 'pinfold.io/v1alpha1', format: 1,
		created, version: '0.2.0', files: [], omissions: []}));
	for (const [name, items] of Object.entries(lists))
		fs.writeFileSync(path.join(dir, 'objects', name + '.json'), JSON.stringify({apiVersion: 'v1', kind: 'List', items}));
}
