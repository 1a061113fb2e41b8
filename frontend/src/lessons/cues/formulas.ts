import { num, now, plain, vector } from '$lib/tex';
import type { Pooling, Shown } from './types';

/** The formula of each kind of attention, with the numbers of the object that has the largest weight. */
export function formulas(pooling: Pooling, shown: Shown): string[] {
  if (pooling === 'max') return [`o_j = \\max_i v_{ij} \\qquad o = ${vector(shown.output)}`];
  const output = `o = \\sum_i w_i v_i = ${vector(shown.output)}`;
  if (pooling === 'average') {
    return [`w_i = \\frac{1}{${now(shown.keys.length)}} = ${num(shown.weights![0], 3)} \\qquad ${output}`];
  }
  return [scoreTex(pooling, shown), weightTex(shown), output];
}

function leader(shown: Shown): number {
  return shown.leaders[0] ?? 0;
}

function scoreTex(pooling: Pooling, shown: Shown): string {
  const i = leader(shown);
  const letter = pooling === 'query' ? 'q' : 'u';
  const asked = pooling === 'query' ? shown.query : shown.saliency;
  const terms = asked.map((part, k) => `${plain(part, 1)}\\cdot ${plain(shown.keys[i][k], 1)}`).join(' + ');
  return `s_{${now(i + 1)}} = ${letter} \\cdot k_{${now(i + 1)}} = ${terms} = ${num(shown.scores![i])}`;
}

function weightTex(shown: Shown): string {
  const i = leader(shown);
  const power = (score: number) => `e^{${plain(score, 1)}}`;
  const sum = shown.scores!.map(power).join(' + ');
  return `w_{${now(i + 1)}} = \\frac{e^{s_{${i + 1}}}}{\\sum_j e^{s_j}} = \\frac{${power(shown.scores![i])}}{${sum}} = ${num(shown.weights![i], 3)}`;
}
