import { describe, expect, it } from 'vitest';
import { brief, cellTex } from './formulas';
import { panelsOf, sceneOf, STAGES, transposed } from './stages';
import { written } from './tokens';
import type { State, TokensShown } from './types';

const square = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 1, 2, 3], [4, 5, 6, 7]];
const rows = [...square, [1, 0, 0, 2]];
const five = (n: number): number[][] => Array.from({ length: 5 }, (_, i) => Array.from({ length: n }, (_, j) => i - j));

const state = { tokens: rows, w_q: square, w_k: square, w_v: square, w_o: square, w_1: square.map((row) => [...row, ...row]), w_2: [...square, ...square] } as State;
const shown = {
  sizes: { tokens: 5, width: 4, heads: 2, head_dim: 2, hidden: 8 },
  query: rows, key: rows, value: rows, joined: rows, attention: rows, sum_1: rows, norm_1: rows, feed_forward: rows, sum_2: rows, output: rows,
  scores: [five(5), five(5)], weights: [five(5), five(5)], pooled: [five(2), five(2)], inner: five(8), logits: five(5), probabilities: five(5),
  mean_1: [1, 2, 3, 4, 5], mean_2: [1, 2, 3, 4, 5], deviation_1: [1, 1, 1, 1, 1], deviation_2: [1, 1, 1, 1, 1],
} as unknown as TokensShown;

describe('the stages', () => {
  it.each(STAGES)('%s: what makes a cell is in the picture, and has its place there', (stage) => {
    const panels = panelsOf(sceneOf(stage, shown, state));
    const made = panels.filter(({ madeOf }) => madeOf);
    expect(made.map(({ id }) => id)).toContain(sceneOf(stage, shown, state).focus);
    for (const panel of made) {
      for (const lit of panel.madeOf!(4, panel.rows[0].length - 1)) {
        const from = panels.find(({ id }) => id === lit.id);
        expect(from, `${panel.id} is made of ${lit.id}`).toBeDefined();
        expect(from!.rows[lit.row ?? 0]?.[lit.column ?? 0]).toBeDefined();
      }
    }
  });

  it.each(STAGES)('%s: every cell that can be pointed at is written out', (stage) => {
    for (const { id, madeOf } of panelsOf(sceneOf(stage, shown, state))) {
      if (madeOf) expect(cellTex(id, 1, 1, shown, state)).not.toBe('');
    }
  });

  it('multiplies a row by as many numbers as the column has', () => {
    expect(cellTex('query', 0, 1, shown, state)).toContain('1\\cdot 2 + 2\\cdot 6 + 3\\cdot 1 + 4\\cdot 5');
    expect(cellTex('scores-1', 0, 1, shown, state)).toContain('3\\cdot 7 + 4\\cdot 8');
    expect(transposed([[1, 2, 3]])).toEqual([[1], [2], [3]]);
  });
});

describe('numbers and tokens', () => {
  it('are short', () => {
    expect([2, 0.5, -1.25, 10, 0, -0.001, null].map((value) => brief(value))).toEqual(['2', '0.5', '−1.25', '10', '0', '0', '−∞']);
  });

  it('say where a word begins, and show what cannot be seen', () => {
    expect(written(' window')).toBe('window');
    expect(written('ing')).toBe('·ing');
    expect(written('She', true)).toBe('She');
    expect([' ', '\u00a0', ''].map((token) => written(token))).toEqual(['␣', '␣', '␣']);
    expect(written('\n')).toBe('↵');
    expect(['.', '学', '\ufffd'].map((token) => written(token))).toEqual(['.', '学', '▯']);
  });
});
