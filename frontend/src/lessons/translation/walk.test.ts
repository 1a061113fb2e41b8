import { describe, expect, it } from 'vitest';
import type { Shown } from './types';
import { best, productOf, rowOf, weightsOf } from './walk';

const shown = {
  weights: [[[0.25, 0.75], [1, 0]], [[0.75, 0.25], [0.5, 0.5]]],
  value: [[[2, 4, 6], [8, 8, 8]], [[1, 1, 1], [3, 3, 3]]],
} as unknown as Shown;

describe('a step of the walk', () => {
  it('has the mean of all heads, or one head', () => {
    expect(weightsOf(shown, null)).toEqual([[0.5, 0.5], [0.75, 0.25]]);
    expect(weightsOf(shown, 1)).toEqual([[0.75, 0.25], [0.5, 0.5]]);
    expect(weightsOf({ ...shown, weights: null }, null)).toBeNull();
  });

  it('pools weight times value', () => {
    expect(productOf(shown, 0, 1, 0)).toEqual([[6, 6, 6]]);
    expect(productOf(shown, 1, 0, null)).toEqual([[2, 4, 6], [0.5, 0.5, 0.5]]);
  });

  it('has one row where the whole source is one vector', () => {
    expect(rowOf([[[1, 2]]], 5, null)).toEqual([[1, 2]]);
    expect(best([0.1, 0.7, 0.2])).toBe(1);
  });
});
