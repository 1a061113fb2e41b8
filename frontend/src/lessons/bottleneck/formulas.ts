import { num } from '$lib/tex';
import type { Sample } from './types';

export interface Looked {
  /** Counted from 1, as in the formula. */
  i: number;
  sign: string;
  attended: [number, number][];
}

/** A step in the middle of the translation, and where it looked; null if nothing was written. */
export function middleStep(sample: Sample): Looked | null {
  const at = Math.floor(sample.tokens.length / 2);
  const attended = sample.attended[at];
  return attended?.length ? { i: at + 1, sign: sample.tokens[at], attended } : null;
}

/** The context of one step as a sum: the largest weights with their numbers. */
export function sumTex({ i, attended }: Looked): string {
  const terms = attended.map(([j, weight]) => `${num(weight)}\\, h_{${j + 1}}`);
  return `c_{${i}} = ${terms.join(' + ')} + \\dots`;
}
