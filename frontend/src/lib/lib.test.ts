import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { lean } from '../../lean-katex.ts';
import { dataOf } from './api';
import { placeLabels } from './labels';
import { inkOn, level, luminance, MAPS, table } from './colours';
import { fixed, short, ticks } from './numbers';
import { python } from './python';

describe('numbers', () => {
  it.each([
    [0.297551, 4, '0.2976'],
    [-1.5, 1, '−1.5'],
    [-0.001, 2, '0.00'],
    [null, 2, '–'],
    [NaN, 2, '–'],
  ])('%s with %s digits', (value, digits, text) => expect(fixed(value, digits)).toBe(text));

  it.each([
    [1234.5, '1230'],
    [0.01234, '0.0123'],
    [-2e-7, '−2.00e−7'],
    [0, '0'],
  ])('%s in short', (value, text) => expect(short(value)).toBe(text));

  it('ticks are round and inside', () => {
    expect(ticks(0, 5, 5)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(ticks(-1, 1.05, 4)).toEqual([-1, 0, 1]);
    expect(ticks(0, 0.35, 4)).toEqual([0, 0.1, 0.2, 0.3]);
  });
});

describe('colour maps', () => {
  const all = MAPS.flatMap((name) => [false, true].map((dark) => ({ name, dark })));

  it.each(all)('$name (dark: $dark) is told apart by lightness alone', ({ name, dark }) => {
    const lights = Array.from({ length: 256 }, (_, at) => luminance(table(name, dark), at));
    const way = Math.sign(lights[255] - lights[0]);
    for (let at = 8; at < 256; at++) expect(way * (lights[at] - lights[at - 8])).toBeGreaterThan(0);
  });

  it.each(all)('ink can be read on all of $name (dark: $dark)', ({ name, dark }) => {
    const map = table(name, dark);
    for (let at = 0; at < 256; at++) {
      const [low, high] = [luminance(map, at), inkOn(map, at) === '#000000' ? 0 : 1].sort((a, b) => a - b);
      expect((high + 0.05) / (low + 0.05)).toBeGreaterThan(4.5);
    }
  });

  it('clamp values outside their range', () => {
    expect([level(-1, 0, 2), level(1, 0, 2), level(9, 0, 2), level(1, 1, 1)]).toEqual([0, 128, 255, 0]);
  });
});

describe('Python highlighting', () => {
  it('keeps the whole text', () => {
    const code = 'x = rg.f("a # b", 1e-3)  # why\nfor y1 in None:\n';
    expect(python(code).map((part) => part.text).join('')).toBe(code);
  });

  it('recognises keywords, numbers, strings and comments', () => {
    const kinds = python('for y1 in "a # b", 2.5:  # c').filter((part) => part.kind);
    expect(kinds.map((part) => [part.kind, part.text])).toEqual([
      ['word', 'for'],
      ['word', 'in'],
      ['text', '"a # b"'],
      ['number', '2.5'],
      ['comment', '# c'],
    ]);
  });
});

it('an event consists of its data lines', () => {
  expect(dataOf('event: x\ndata: {"a":\ndata: 1}')).toBe('{"a":\n1}');
  expect(dataOf(': still here')).toBe('');
});

it('the style sheet of formulas loads only woff2 fonts', () => {
  const css = lean(readFileSync('node_modules/katex/dist/katex.min.css', 'utf8'));
  const fonts = [...css.matchAll(/url\(([^)]*)\)/g)].map((found) => found[1]);
  expect(fonts.length).toBeGreaterThan(5);
  expect(fonts.every((font) => font.endsWith('.woff2'))).toBe(true);
  expect(css).not.toContain('KaTeX_Fraktur-');
});

describe('names beside dots', () => {
  it('stand to the right of their dot where there is room', () =>
    expect(placeLabels([{ x: 50, y: 50, name: 'key' }])).toEqual([{ x: 61, y: 50, anchor: 'start' }]));

  it('stand away from the origin of an arrow', () =>
    expect(placeLabels([{ x: 50, y: 50, name: 'key' }], 80)).toEqual([{ x: 39, y: 50, anchor: 'end' }]));

  it('overlap neither each other nor a dot', () => {
    const [query, output, key] = placeLabels([
      { x: 100, y: 100, name: 'query' },
      { x: 92, y: 107, name: 'output' },
      { x: 125, y: 117, name: 'key' },
    ]);
    expect(query.anchor).toBe('start');
    expect(output.anchor).toBe('end');
    expect(key.anchor).toBe('start');
  });
});
