import { MEASURES, type Pool, type Profile } from './source';
import type { DeepZoom } from './deep-zoom';
import { keyOf, visible, type Head } from './heads';
import { drawingOf, pictureOf, snapshot } from './snapshot';

/** Downloads a file. */
export function save(name: string, body: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(body);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Copies a text. Browsers offer the clipboard API only on localhost and https; elsewhere `execCommand` works. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

export function savePicture(root: HTMLElement, name: string): void {
  const made = pictureOf(snapshot(root), getComputedStyle(root).fontFamily);
  made.toBlob((blob) => blob && save(`${name}.png`, blob), 'image/png');
}

export function saveDrawing(root: HTMLElement, name: string, title: string): void {
  const made = drawingOf(snapshot(root), title, getComputedStyle(root).fontFamily);
  save(`${name}.svg`, new Blob([made], { type: 'image/svg+xml' }));
}

/** CSV with a byte order mark, by which spreadsheets recognise UTF-8. */
export function saveTable(lines: string[][], name: string): void {
  const text = lines.map((line) => line.map(cell).join(',')).join('\r\n');
  save(`${name}.csv`, new Blob(['\ufeff', text, '\r\n'], { type: 'text/csv;charset=utf-8' }));
}

/** The visible part as numbers: one line per row of pixels, each pixel `side` x `side` cells. */
export interface Window {
  side: number;
  firstRow: number;
  firstColumn: number;
  rows: Float32Array[];
}

const MOST = 4_000_000; // numbers in a file, a size that a spreadsheet still opens

/** Values of the visible pixels, at the visible level. */
export async function windowOf(deep: DeepZoom, pool: Pool): Promise<Window> {
  const { sheet, frame } = deep;
  const { n, m, tile, levels } = sheet.info;
  const span = (from: number, length: number, count: number, side: number): [number, number] => [
    Math.max(0, Math.floor(from / side)),
    Math.min(Math.ceil(count / side), Math.ceil((from + length / frame.size) / side)),
  ];
  let level = deep.level - 1;
  let [top, bottom, left, right] = [0, 0, 0, 0];
  do {
    level++;
    [top, bottom] = span(frame.top, frame.height, n, 1 << level);
    [left, right] = span(frame.left, frame.width, m, 1 << level);
  } while ((bottom - top) * (right - left) > MOST && level < levels - 1);
  const rows = Array.from({ length: Math.max(0, bottom - top) }, () => new Float32Array(Math.max(0, right - left)));
  for (let row = Math.floor(top / tile); row * tile < bottom; row++) {
    for (let column = Math.floor(left / tile); column * tile < right; column++) {
      const { values, shape } = await sheet.block({ pool, level, row, column });
      const [low, high] = [Math.max(left, column * tile), Math.min(right, column * tile + shape[1])];
      for (let i = Math.max(top, row * tile); i < Math.min(bottom, (row + 1) * tile); i++) {
        const from = (i - row * tile) * shape[1] - column * tile;
        rows[i - top].set(values.subarray(from + low, from + high), low - left);
      }
    }
  }
  return { side: 1 << level, firstRow: top << level, firstColumn: left << level, rows };
}

/** Rows of the CSV file: the first line names the keys, the first column the queries. */
export function tableOf({ side, firstRow, firstColumn, rows }: Window, queries: string[] | null, keys: string[] | null): string[][] {
  const named = (texts: string[] | null, at: number): string =>
    side > 1 ? `${at}-${at + side - 1}` : texts ? `${at} ${visible(texts[at])}` : String(at);
  const head = ['', ...Array.from(rows[0] ?? [], (_, j) => named(keys, firstColumn + j * side))];
  return [head, ...rows.map((row, i) => [named(queries, firstRow + i * side), ...Array.from(row, plain)])];
}

/** Measures of the heads, in the order of the wall. */
export function headsTable(heads: Head[], profiles: Map<string, Profile>): string[][] {
  const line = (head: Head): string[] => {
    const profile = profiles.get(keyOf(head));
    const numbers = MEASURES.map((name) => profile?.[name] ?? null);
    return [head.name, String(head.layer), String(head.number), ...numbers.map((value) => (value === null ? '' : String(value)))];
  };
  return [['module', 'layer', 'head', ...MEASURES], ...heads.map(line)];
}

/** Weights from and to the selected token, one line per token. */
export function tokenTable(queries: string[], keys: string[], gives: Float32Array | null, gets: Float32Array | null): string[][] {
  const count = Math.max(gives ? keys.length : 0, gets ? queries.length : 0);
  const line = (i: number): string[] => [
    String(i),
    keys[i] ?? '',
    gives && i < gives.length ? plain(gives[i]) : '',
    queries[i] ?? '',
    gets && i < gets.length ? plain(gets[i]) : '',
  ];
  return [['position', 'key', 'attends to', 'query', 'is attended by'], ...Array.from({ length: count }, (_, i) => line(i))];
}

/** Shortest decimal that gives the same float32. */
export function plain(value: number): string {
  for (let digits = 1; digits < 10; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}

/** Escapes a cell. An apostrophe keeps spreadsheets from reading a text as a formula. */
export function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
