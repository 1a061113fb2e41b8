/** What a step of the walk shows, of one head or of all. */
import type { Heads, Shown } from './types';

/** The weights of a head, or the mean of all heads; null without attention. */
export function weightsOf(shown: Shown, head: number | null): number[][] | null {
  const heads = shown.weights;
  if (!heads) return null;
  if (head !== null && head < heads.length) return heads[head];
  return heads[0].map((row, i) => row.map((_, j) => heads.reduce((sum, one) => sum + one[i][j], 0) / heads.length));
}

/** A row of numbers of the chosen head, or one of each head. */
export function rowOf(heads: Heads, place: number, head: number | null): number[][] {
  const chosen = head !== null && head < heads.length ? [heads[head]] : heads;
  return chosen.map((rows) => rows[Math.min(place, rows.length - 1)]);
}

/** Weight times value of one source token, for each head that is shown. */
export function productOf(shown: Shown, step: number, j: number, head: number | null): number[][] {
  const weights = rowOf(shown.weights!, step, head).map((row) => row[j]);
  return rowOf(shown.value, j, head).map((row, h) => row.map((number) => number * weights[h]));
}

export function largest(heads: Heads): number {
  return Math.max(1e-9, ...heads.flat(2).map(Math.abs));
}

export function best(row: number[]): number {
  return row.indexOf(Math.max(...row));
}
