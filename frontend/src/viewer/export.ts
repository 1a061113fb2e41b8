import { visible } from './heads';
import type { Deep } from './deep';
import type { Pool } from './source';

/** Hand somebody a file. */
export function save(name: string, body: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(body);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** What is on the screen as numbers: one line a row of pixels, and each pixel `side` x `side` cells. */
export interface Window {
  side: number;
  firstRow: number;
  firstColumn: number;
  rows: Float32Array[];
}

const MOST = 4_000_000; // numbers in a file that a spreadsheet still opens

/** The numbers of the pixels on the screen, at the level that is shown. */
export async function windowOf(deep: Deep, pool: Pool): Promise<Window> {
  const { sheet, frame } = deep;
  const { n, m, tile } = sheet.info;
  let level = deep.level;
  const span = (from: number, length: number, count: number, side: number): [number, number] => [
    Math.max(0, Math.floor(from / side)),
    Math.min(Math.ceil(count / side), Math.ceil((from + length / frame.size) / side)),
  ];
  let [top, bottom, left, right] = [0, 0, 0, 0];
  for (; ; level++) {
    [top, bottom] = span(frame.top, frame.height, n, 1 << level);
    [left, right] = span(frame.left, frame.width, m, 1 << level);
    if ((bottom - top) * (right - left) <= MOST || level === sheet.info.levels - 1) break;
  }
  const rows = Array.from({ length: Math.max(0, bottom - top) }, () => new Float32Array(Math.max(0, right - left)));
  for (let row = Math.floor(top / tile); row * tile < bottom; row++) {
    for (let column = Math.floor(left / tile); column * tile < right; column++) {
      const { values, shape } = await sheet.block({ pool, level, row, column });
      for (let i = Math.max(top, row * tile); i < Math.min(bottom, (row + 1) * tile); i++) {
        const from = (i - row * tile) * shape[1];
        for (let j = Math.max(left, column * tile); j < Math.min(right, column * tile + shape[1]); j++) {
          rows[i - top][j - left] = values[from + j - column * tile];
        }
      }
    }
  }
  return { side: 1 << level, firstRow: top << level, firstColumn: left << level, rows };
}

/** A table that every spreadsheet reads: the first line names the keys, the first column the queries. */
export function csvOf({ side, firstRow, firstColumn, rows }: Window, queries: string[] | null, keys: string[] | null): string {
  const named = (texts: string[] | null, at: number): string =>
    side > 1 ? `${at}-${at + side - 1}` : texts ? `${at} ${visible(texts[at])}` : String(at);
  const head = ['', ...Array.from(rows[0] ?? [], (_, j) => named(keys, firstColumn + j * side))];
  const lines = rows.map((row, i) => [named(queries, firstRow + i * side), ...Array.from(row, plain)]);
  return [head, ...lines].map((line) => line.map(cell).join(',')).join('\r\n') + '\r\n';
}

/** As few digits as give the same float32 back. */
export function plain(value: number): string {
  for (let digits = 1; digits < 10; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}

/** A text that begins like a formula is one to a spreadsheet: an apostrophe keeps it a text. */
export function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Every canvas of a pane, as they lie on the screen. */
export function pictureOf(pane: HTMLElement, title: string): HTMLCanvasElement {
  const grid = pane.querySelector<HTMLElement>('.grid')!;
  const box = grid.getBoundingClientRect();
  const style = getComputedStyle(pane);
  const ratio = Math.max(2, devicePixelRatio);
  const made = document.createElement('canvas');
  const head = 40;
  made.width = Math.round(box.width * ratio);
  made.height = Math.round((box.height + head) * ratio);
  const context = made.getContext('2d')!;
  context.scale(ratio, ratio);
  context.fillStyle = paperColour(pane);
  context.fillRect(0, 0, box.width, box.height + head);
  context.fillStyle = style.color;
  context.font = `620 16px ${style.fontFamily}`;
  context.textBaseline = 'middle';
  context.fillText(title, 8, head / 2);
  context.imageSmoothingEnabled = false;
  for (const canvas of grid.querySelectorAll('canvas')) {
    const at = canvas.getBoundingClientRect();
    if (!canvas.width || !at.width) continue;
    context.drawImage(canvas, at.left - box.left, at.top - box.top + head, at.width, at.height);
  }
  return made;
}

function paperColour(node: HTMLElement): string {
  for (let at: HTMLElement | null = node; at; at = at.parentElement) {
    const { backgroundColor } = getComputedStyle(at);
    if (backgroundColor !== 'rgba(0, 0, 0, 0)') return backgroundColor;
  }
  return '#ffffff';
}

/** The map as a drawing: one image without smoothing, and texts that stay texts. */
export function svgOf(deep: Deep, texts: { queries: string[] | null; keys: string[] | null }, title: string): string {
  const { frame, sheet } = deep;
  const gutter = 96;
  const [width, height] = [frame.width + gutter + 16, frame.height + gutter + 48];
  const image = deep.canvas.toDataURL('image/png');
  const names = [...namesOf(frame.top, frame.size, frame.height, texts.queries, sheet.info.n, false), ''];
  const tops = namesOf(frame.left, frame.size, frame.width, texts.keys, sheet.info.m, true);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, Noto Sans CJK SC, sans-serif">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="8" y="26" font-size="16" font-weight="600">${escaped(title)}</text>`,
    `<g transform="translate(${gutter} ${gutter + 32})">`,
    `<image width="${frame.width}" height="${frame.height}" href="${image}" style="image-rendering:pixelated"/>`,
    ...names,
    ...tops,
    '</g>',
    '</svg>',
  ].join('\n');
}

function namesOf(
  start: number,
  size: number,
  length: number,
  texts: string[] | null,
  count: number,
  across: boolean,
): string[] {
  const step = Math.max(1, Math.ceil(11 / size));
  const points = Math.min(13, Math.max(9, size * 0.8));
  const found: string[] = [];
  const [first, last] = [Math.max(0, Math.ceil(start)), Math.min(count - 1, Math.floor(start + length / size))];
  for (let i = Math.ceil(first / step) * step; i <= last; i += step) {
    const at = (i + 0.5 - start) * size;
    const text = escaped(texts && step === 1 ? visible(texts[i]) : String(i));
    const where = across ? `transform="translate(${at} -6) rotate(-90)"` : `x="-6" y="${at}" text-anchor="end"`;
    found.push(`<text ${where} font-size="${points}" dominant-baseline="central">${text}</text>`);
  }
  return found;
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '�');
}
