/* Small pictures of pages, and how much two of them differ. A picture has half the size of the page and at most 256 colours, as
 * a PNG with a palette. */

import zlib from 'node:zlib';

/* --- reading: the browser decodes --- */

/* The screenshot at half its size, as bytes of red, green and blue. */
export async function halve(page, png) {
	return page.evaluate(async (base64) => {
		const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
		const image = await createImageBitmap(new Blob([bytes], {type: 'image/png'}));
		const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
		context.drawImage(image, 0, 0);
		const from = context.getImageData(0, 0, image.width, image.height).data;
		const width = image.width >> 1, height = image.height >> 1, rgb = new Uint8Array(width * height * 3);
		for (let y = 0, to = 0; y < height; y++)
			for (let x = 0; x < width; x++)
				for (let c = 0; c < 3; c++, to++) {
					const at = (y * 2 * image.width + x * 2) * 4 + c, below = at + image.width * 4;
					rgb[to] = (from[at] + from[at + 4] + from[below] + from[below + 4] + 2) >> 2;
				}
		let text = '';
		for (let i = 0; i < rgb.length; i += 32768)
			text += String.fromCharCode(...rgb.subarray(i, i + 32768));
		return {width, height, base64: btoa(text)};
	}, png.toString('base64')).then(({width, height, base64}) => ({width, height, rgb: Buffer.from(base64, 'base64')}));
}

/* Only what encode() writes: one IDAT, eight bits for a pixel, filter 0. */
export function decode(png) {
	let width, height, palette, at = 8;
	for (;;) {
		const n = png.readUInt32BE(at), type = png.toString('latin1', at + 4, at + 8), data = png.subarray(at + 8, at + 8 + n);
		at += 12 + n;
		if (type === 'IHDR') {
			width = data.readUInt32BE(0);
			height = data.readUInt32BE(4);
		} else if (type === 'PLTE') {
			palette = data;
		} else if (type === 'IDAT') {
			const rows = zlib.inflateSync(data), rgb = Buffer.alloc(width * height * 3);
			for (let y = 0, to = 0; y < height; y++)
				for (let x = 0; x < width; x++, to += 3)
					palette.copy(rgb, to, rows[y * (width + 1) + 1 + x] * 3, rows[y * (width + 1) + 1 + x] * 3 + 3);
			return {width, height, rgb};
		}
	}
}

/* --- writing --- */

const bucket = (rgb, i) => (rgb[i] & 0xfc) << 16 | (rgb[i + 1] & 0xfc) << 8 | rgb[i + 2] & 0xfc;
const channels = (key) => [key >> 16, key >> 8 & 255, key & 255];

/* The channel in which the colours of a box differ most, and by how much. */
function spread(box) {
	const ranges = [0, 1, 2].map((c) => Math.max(...box.map(({at}) => at[c])) - Math.min(...box.map(({at}) => at[c])));
	const range = Math.max(...ranges);
	return {channel: ranges.indexOf(range), range};
}

/* Median cut: the box of colours that differ most is halved until there are 256 boxes. */
function choosePalette(rgb) {
	const counts = new Map();
	for (let i = 0; i < rgb.length; i += 3) {
		const key = bucket(rgb, i);
		counts.set(key, (counts.get(key) || 0) + 1);
	}
	const boxes = [[...counts].map(([key, n]) => ({key, n, at: channels(key)}))];
	while (boxes.length < 256) {
		const worst = boxes.reduce((best, box, i) => spread(box).range > spread(boxes[best]).range ? i : best, 0);
		const {channel, range} = spread(boxes[worst]);
		if (!range)
			break;
		const box = boxes[worst].sort((a, b) => a.at[channel] - b.at[channel]);
		const middle = (box[0].at[channel] + range / 2), cut = box.findIndex(({at}) => at[channel] > middle);
		boxes.splice(worst, 1, box.slice(0, cut), box.slice(cut));
	}
	const mean = (box, c) => Math.round(box.reduce((sum, {n, at}) => sum + n * (at[c] + 1.5), 0) / box.reduce((sum, {n}) => sum + n, 0));
	return {colours: boxes.map((box) => [0, 1, 2].map((c) => Math.min(255, mean(box, c)))),
		index: new Map(boxes.flatMap((box, i) => box.map(({key}) => [key, i])))};
}

function chunk(type, data) {
	const body = Buffer.concat([Buffer.from(type, 'latin1'), data]), out = Buffer.alloc(body.length + 8);
	out.writeUInt32BE(data.length, 0);
	body.copy(out, 4);
	out.writeUInt32BE(zlib.crc32(body), body.length + 4);
	return out;
}

export function encode({width, height, rgb}) {
	const {colours, index} = choosePalette(rgb), rows = Buffer.alloc((width + 1) * height), head = Buffer.alloc(13);
	for (let y = 0, from = 0; y < height; y++)
		for (let x = 0; x < width; x++, from += 3)
			rows[y * (width + 1) + 1 + x] = index.get(bucket(rgb, from));
	head.writeUInt32BE(width, 0);
	head.writeUInt32BE(height, 4);
	head.set([8, 3, 0, 0, 0], 8);
	return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('PLTE', Buffer.from(colours.flat())),
		chunk('IDAT', zlib.deflateSync(rows, {level: 9})), chunk('IEND', Buffer.alloc(0))]);
}

/* --- comparing --- */

const BLOCK = 4; /* 8 pixels of the page: about a digit */

/* The block that differs most: the mean difference of its pixels, 0 to 255, and where it is in the page. Fonts that are drawn a
 * little differently change each pixel a little; another digit changes a block a lot. */
export function compare(a, b) {
	const worst = {difference: 0, x: 0, y: 0};
	if (a.width !== b.width || a.height !== b.height)
		return {difference: 255, x: 0, y: 0, size: `${b.width * 2}x${b.height * 2} instead of ${a.width * 2}x${a.height * 2}`};
	for (let top = 0; top < a.height; top += BLOCK)
		for (let left = 0; left < a.width; left += BLOCK) {
			let sum = 0, n = 0;
			for (let y = top; y < Math.min(a.height, top + BLOCK); y++)
				for (let i = (y * a.width + left) * 3, end = (y * a.width + Math.min(a.width, left + BLOCK)) * 3; i < end; i++, n++)
					sum += Math.abs(a.rgb[i] - b.rgb[i]);
			if (sum / n > worst.difference)
				Object.assign(worst, {difference: sum / n, x: left * 2, y: top * 2});
		}
	return worst;
}
