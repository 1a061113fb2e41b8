import { num, vector } from '$lib/tex';
import type { Name, Shown, State } from './types';

const FORMULAS: Record<Name, (state: State) => string> = {
  dot: () => 's_j = q \\cdot k_j',
  scaled_dot: () => 's_j = q \\cdot k_j / \\sqrt{2}',
  general: () => 's_j = q^\\top W k_j',
  additive: () => 's_j = v^\\top \\tanh(W_q q + W_k k_j)',
  concat: () => 's_j = v^\\top \\tanh(W\\,[q; k_j])',
  location: () => 's = W q',
  gaussian: (state) => `s_j = -\\tfrac{1}{2} \\lVert (q - k_j) \\cdot ${num(state.width)} \\rVert^2`,
  cosine: (state) => `s_j = \\cos(q, k_j) / ${num(state.temperature)}`,
};

export function scoresTex(shown: Shown, state: State): string {
  return `${FORMULAS[state.chosen](state)}, \\qquad s = ${vector(shown.scores)}`;
}

export function weightsTex(shown: Shown): string {
  return `w = \\operatorname{softmax}(s) = ${vector(shown.weights, 3)}, \\qquad
    \\textstyle\\sum_j w_j k_j = ${vector(shown.output)}`;
}
