import { describe, expect, it } from 'vitest';
import { scoped } from '../../scoped-css.ts';
import { matrixGrid, neighbour, orderedGrid } from './compact-grid';
import { common, Difference, type MapSource } from './difference';
import { cell, plain, tableOf } from './export';
import { roundStep } from './gutter';
import { headsOf, labelAt, labelInLine, matches, pieceAt, sorted, tokensOf, visible, type Head } from './heads';
import { largest, position, TilePainter, share, valueAt } from './colour-scale';
import { messages, type Model } from './messages';
import { cellText } from './overlay';
import { escaped } from './snapshot';
import type { Metadata, Profile } from './source';
import { largestOf } from './token-weights.svelte';
import { ColourLimits } from './colour-limits';
import { windowWeights } from './window-weights';

const entry = (number: number, layer: string, step: number, heads: number[] | null = null) => ({
  entry: number,
  layer,
  step,
  shape: [1, 3, 2, 2] as [number, number, number, number],
  cross: false,
  mask: '',
  heads,
  bytes: 0,
  queries: 'input_ids',
  keys: null,
});
const meta: Metadata = {
  id: 'a',
  name: 'a',
  model: null,
  layers: 2,
  heads: 3,
  entries: [entry(0, 'x.0', 0), entry(1, 'x.1', 0, [2, 5, 7]), entry(2, 'x.0', 1)],
  tokens: { '0': { input_ids: [['<b>', '\n']] } },
  missing: [],
};
const profile = (sink: number | null): Profile =>
  ({ entry: 0, head: 0, entropy: 1, saturation: 0, distance: 0, sink, previous: 0, self: 0, separators: null }) as Profile;

describe('heads', () => {
  const heads = headsOf(meta, 0);

  it('have their index in the layer, also if only some were recorded', () => {
    expect(heads.map((head) => [head.layer, head.number])).toEqual([[0, 0], [0, 1], [0, 2], [1, 2], [1, 5], [1, 7]]);
  });

  it('are sorted by a measure, and those without it come last', () => {
    const known = new Map([['0/0', profile(0.2)], ['0/1', profile(null)], ['0/2', profile(0.9)]]);
    const order = (up: boolean) => sorted(heads, known, 'sink', up).slice(0, 2).map((head) => head.head);
    expect([order(true), order(false)]).toEqual([[0, 2], [2, 0]]);
  });

  it.each([
    ['layer 1', [3, 4, 5]],
    ['sink>0.5', [2]],
    ['x.0 sink<=0.2', [0]],
    ['sink>', []],
    ['', [0, 1, 2, 3, 4, 5]],
  ])('%s finds %s', (asked, found) => {
    const known = [profile(0.2), undefined, profile(0.9)];
    const label = (head: Head) => `layer ${head.layer} · head ${head.number}`;
    const hits = heads.flatMap((head, i) => (matches(head, known[i], label(head), asked) ? [i] : []));
    expect(hits).toEqual(found);
  });

  it('have tokens where there are as many as queries', () => {
    expect(tokensOf(meta, meta.entries[0], 0)).toEqual({ queries: ['<b>', '\n'], keys: null });
    expect(tokensOf(meta, meta.entries[2], 0).queries).toBeNull();
    expect(['\n', ' a', ''].map(visible)).toEqual(['⏎', '␣a', '∅']);
  });
});

describe('tokens that share a character', () => {
  const texts = ['a', '姚 1/2', '姚 2/2', '旷 1/3', '旷 2/3', '旷 3/3', ' 1/2', 'b 2/2', 'c 1/2', 'c'];

  it('have that character as their label', () => {
    expect(texts.map((_, at) => labelAt(texts, at)).slice(0, 6)).toEqual(['a', '姚', '姚', '旷', '旷', '旷']);
    expect(texts.map((_, at) => labelInLine(texts, at)).slice(0, 6)).toEqual(['a', '姚', '·', '旷', '·', '·']);
    expect(pieceAt(texts, 4)).toEqual({ text: '旷', part: 2, count: 3 });
  });

  it('are not confused with a text that only looks like them', () => {
    expect(texts.slice(6).map((_, at) => labelAt(texts, 6 + at))).toEqual(['␣1/2', 'b 2/2', 'c 1/2', 'c']);
  });
});

describe('the compact wall', () => {
  const model = (layers: number, heads: number): Head[] =>
    Array.from({ length: layers * heads }, (_, i) => {
      const [layer, number] = [Math.floor(i / heads), i % heads];
      return { entry: layer, head: number, layer, number, name: `x.${layer}`, step: 0 };
    });
  const room = { width: 980, height: 520, least: 6, most: 72 };

  it.each([[30, 9], [9, 30], [48, 32], [80, 64], [1, 1]])('%s layers x %s heads fit in a window, with as many places as heads', (layers, heads) => {
    const all = model(layers, heads);
    for (const { places, count, size } of [matrixGrid(all, all, room), orderedGrid(all, room)]) {
      const rows = 1 + Math.max(...places.map(({ row }) => row));
      expect([count * size <= room.width, rows * size <= room.height]).toEqual([true, true]);
      expect(new Set(places.map(({ row, column }) => `${row}/${column}`)).size).toBe(layers * heads);
    }
  });

  it('puts the longer side of the model along the longer side of the window', () => {
    const all = model(30, 9);
    expect(matrixGrid(all, all, room)).toMatchObject({ across: 'layers', count: 30, size: 32 });
    expect(matrixGrid(all, all, { ...room, width: 300, height: Infinity })).toMatchObject({ across: 'heads', count: 9, size: 33 });
  });

  it('keeps heads in their place when others are not found, and arrow keys skip the gaps', () => {
    const all = model(5, 3);
    const { places } = matrixGrid(all.filter(({ layer }) => layer !== 2), all, room);
    const from = places.find(({ head }) => head.layer === 1 && head.number === 1)!;
    expect(neighbour(places, from, 'ArrowRight')!.head).toMatchObject({ layer: 3, number: 1 });
    expect(neighbour(places, from, 'ArrowUp')!.head).toMatchObject({ layer: 1, number: 0 });
    expect(neighbour(places, from, 'a')).toBeNull();
    expect(neighbour(places, from, 'End')!.head).toEqual(all.at(-1));
  });
});

describe('colour scale', () => {
  const ink = { map: 'viridis', dark: false, log: false, gamma: 1, rows: false, skip: 0, signed: false } as const;

  it.each([true, false])('a value and its position on the scale convert both ways (log: %s)', (log) => {
    for (const gamma of [0.3, 1, 2]) expect(share(valueAt(0.6, 0.02, { log, gamma }), 0.02, { log, gamma })).toBeCloseTo(0.6);
  });

  it('can divide each row by its own maximum', () => {
    const out = new Uint32Array(4);
    const brush = new TilePainter(ink);
    brush.paint(new Float32Array([1, 2, 10, 20]), 2, new Float32Array([2, 20]), out);
    expect([out[0], out[1]]).toEqual([out[2], out[3]]);
    brush.paint(new Float32Array([1, 2, 10, 20]), 2, 20, out);
    expect(out[0]).not.toBe(out[2]);
  });

  it('leaves columns out of the colours and of the limit', () => {
    const values = new Float32Array([9, 1, 2, 8, 3, 4]);
    expect([largest(values, 3), largest(values, 3, 1), largest(values)]).toEqual([9, 4, 9]);
    const [all, some] = [new Uint32Array(6), new Uint32Array(6)];
    new TilePainter(ink).paint(values, 3, 4, all);
    new TilePainter(ink).paint(values, 3, 4, some, 1);
    expect([...some]).toEqual([...all].map((colour, at) => (at % 3 ? colour : 0)));
  });

  it('has a colour of its own for NaN', () => {
    const out = new Uint32Array(3);
    new TilePainter(ink).paint(new Float32Array([NaN, 0, 1]), 3, 1, out);
    expect(new Set(out).size).toBe(3);
  });
});

describe('a difference', () => {
  const place = { id: 'a', entry: 0, batch: 0, head: 0 };
  const known = (values: number[], empty: [number, number][], exact = true): MapSource => {
    const block = async () => ({ values: new Float32Array(values), shape: [values.length], exact });
    const info = async () => ({ n: 4, m: 2, tile: 256, levels: 1, exact, progress: exact ? 1 : 0.5, max: 1, empty });
    return { info, row: block, column: block, tile: async (_, pool) => (pool === 'mean' ? block() : Promise.reject(new Error(pool))) };
  };
  const a = { source: known([0.5, 0.25], [[0, 2]]), place };
  const b = { source: known([0.125, 0.75], [[1, 4]], false), place };

  it('is A - B, and keeps both weights', async () => {
    const both = new Difference(a, b);
    expect([...(await both.row(place, 3)).values]).toEqual([0.375, -0.5]);
    expect([...(await both.column(place, 0)).values]).toEqual([0.375, -0.5]);
    expect([...(await both.tile(place, 'max', 0, 0, 0)).values]).toEqual([0.375, -0.5]);
    expect(both.pair(3, 1)).toEqual({ a: 0.25, b: 0.75 });
    expect(both.pair(0, 1)).toBeNull();
  });

  it('is exact where both are, and has no value where both are empty', async () => {
    expect(await new Difference(a, b).info(place)).toMatchObject({ exact: false, progress: 0.5, empty: [[1, 2]] });
    expect(common([[0, 3], [5, 9]], [[2, 6], [8, 12]])).toEqual([[2, 3], [5, 6], [8, 9]]);
  });

  it.each([true, false])('has colours that are as far from the middle for A - B as for B - A (log: %s)', (log) => {
    const ink = { map: 'viridis', dark: false, log, gamma: 0.7, rows: false, skip: 0, signed: true } as const;
    for (const value of [0, 0.01, 0.3, 1]) expect(position(value, 1, ink) + position(-value, 1, ink)).toBeCloseTo(1);
    const out = new Uint32Array(3);
    new TilePainter(ink).paint(new Float32Array([-1, 0, 1]), 3, 1, out);
    const [blue, red] = [(colour: number) => (colour >> 16) & 255, (colour: number) => colour & 255];
    expect(blue(out[0])).toBeGreaterThan(red(out[0]));
    expect(red(out[2])).toBeGreaterThan(blue(out[2]));
    expect(Math.abs(red(out[1]) - blue(out[1]))).toBeLessThan(12);
    expect(largest(new Float32Array([-0.5, 0.25]))).toBe(0.5);
  });

  it('is written with its sign', () => {
    expect([0.25, -0.25, 0.0001, -0.0001, 0, 1].map((value) => cellText(value, true))).toEqual(['+.250', '−.250', '≈0', '≈0', '0', '+1.000']);
    expect([0.25, 0.0001, 0, 1].map((value) => cellText(value, false))).toEqual(['.250', '<.001', '0', '1.000']);
  });
});

it('two maps share one colour limit, which shrinks only when both are much fainter', () => {
  const tops = new ColourLimits();
  const [a, b] = [{}, {}];
  tops.see(a, 0.5);
  tops.see(b, 1);
  expect(tops.now).toBe(1);
  tops.see(b, 0.7);
  expect(tops.now).toBe(1);
  tops.see(b, 0.1);
  expect(tops.now).toBe(1); // a still has 0.5
  tops.see(a, 0.2);
  expect(tops.now).toBe(0.2);
});

it('a limit that was reset may shrink a little', () => {
  const tops = new ColourLimits();
  tops.see(tops, 1);
  tops.reset();
  tops.see(tops, 0.9);
  expect(tops.now).toBe(0.9);
});

describe('tables', () => {
  it('keep every float32 exactly', () => {
    for (const value of [0, 1, 1 / 3, 1.1842619e-4, 3e-39].map(Math.fround)) expect(Math.fround(Number(plain(value)))).toBe(value);
  });

  it('escape formulas, quotes and commas', () => {
    expect(['=1+1', '-0.5', '@x', 'a"b', 'x,y', '-'].map(cell)).toEqual(["'=1+1", '-0.5', "'@x", '"a""b"', '"x,y"', "'-"]);
  });

  it('name rows and columns by position and token', () => {
    const rows = [new Float32Array([0.5, 0.25])];
    expect(tableOf({ side: 1, firstRow: 1, firstColumn: 0, rows }, ['a', 'b'], null)).toEqual([['', '0', '1'], ['1 b', '0.5', '0.25']]);
    expect(tableOf({ side: 4, firstRow: 8, firstColumn: 0, rows }, ['a'], null)[1][0]).toBe('8-11');
  });
});

it('markup in a token is escaped in SVG', () => {
  expect(escaped('</script><b a="1">&\u0001')).toBe('&#60;/script&#62;&#60;b a=&#34;1&#34;&#62;&#38;�');
});

it.each([[1, 1], [3, 5], [11, 20], [700, 1000]])('a step above %s is %s', (least, step) => expect(roundStep(least)).toBe(step));

it('a window of weights is cut from the tiles that it touches', async () => {
  const [n, m] = [300, 600];
  const source = {
    tile: async (_: unknown, __: unknown, ___: number, y: number, x: number) => {
      const shape = [Math.min(256, n - 256 * y), Math.min(256, m - 256 * x)];
      const at = (k: number): number => (256 * y + Math.floor(k / shape[1])) * m + 256 * x + (k % shape[1]);
      return { values: Float32Array.from({ length: shape[0] * shape[1] }, (_, k) => at(k)), shape, exact: true };
    },
  };
  for (const block of [{ row: 250, column: 505, rows: 11, columns: 17 }, { row: 0, column: 0, rows: 3, columns: 5 }, { row: 290, column: 560, rows: 10, columns: 40 }]) {
    const found = await windowWeights(source, { id: 'a', entry: 0, batch: 0, head: 0 }, block);
    const wanted = Array.from({ length: block.rows * block.columns }, (_, k) => (block.row + Math.floor(k / block.columns)) * m + block.column + (k % block.columns));
    expect([...found]).toEqual(wanted);
  }
});

it('the largest weights come first, and zeros are left out', () => {
  expect(largestOf(new Float32Array([0, 0.1, 0.5, 0, 0.4]), 2)).toEqual([2, 4]);
  expect(largestOf(new Float32Array([0, 0]), 2)).toEqual([]);
});

describe('messages of a notebook', () => {
  function kernel() {
    const sent: { number: number; question?: string; forget?: boolean }[] = [];
    let hear: (...given: never[]) => void = () => {};
    const model = { get: () => '', set() {}, save_changes() {}, off() {}, on: (_: string, f: typeof hear) => (hear = f), send: (m: never) => sent.push(m) };
    return { sent, source: messages(model as unknown as Model), say: (...given: unknown[]) => hear(...(given as never[])) };
  }
  const place = { id: 'a', entry: 0, batch: 0, head: 0 };

  it('replies may come in any order, with arrays at unaligned offsets', async () => {
    const { sent, source, say } = kernel();
    const [row, info] = [source.row(place, 3), source.info(place)];
    say({ number: sent[1].number, json: { n: 5 } });
    const bytes = new Uint8Array(new Float32Array([0, 0.25, 0.75]).buffer);
    const shifted = new Uint8Array(14);
    shifted.set(bytes, 2);
    say({ number: sent[0].number, shape: [3], exact: true }, [new DataView(shifted.buffer, 2, 12)]);
    expect([...(await row).values]).toEqual([0, 0.25, 0.75]);
    expect(await info).toEqual({ n: 5 });
  });

  it('an aborted request is cancelled in the kernel, and an error reply rejects', async () => {
    const { sent, source, say } = kernel();
    const stop = new AbortController();
    const row = source.row(place, 3, stop.signal);
    stop.abort();
    await expect(row).rejects.toThrow('cancelled');
    expect(sent.at(-1)).toEqual({ number: sent[0].number, forget: true });
    const meta = source.meta('b');
    say({ number: sent.at(-1)!.number, error: 'no such recording', status: 404 });
    await expect(meta).rejects.toMatchObject({ message: 'no such recording', status: 404 });
  });
});

it('the style sheet applies only inside the widget', () => {
  const css = scoped(':root {\n  --a: 1;\n}\n\n:root[data-theme=\'dark\'] {\n  color: red;\n}\n\nbody {\n  margin: 0;\n}\n\np {\n  a: b;\n}', '.x');
  expect(css.startsWith(':where(.x) {')).toBe(true);
  expect(css).not.toMatch(/:root|^body/m);
  expect(css).toContain("&[data-theme='dark']");
});
