/** Types of the state and the answer of `regard.lab.pages.scores`. */
export const NAMES = ['dot', 'scaled_dot', 'general', 'additive', 'concat', 'location', 'gaussian', 'cosine'] as const;
export type Name = (typeof NAMES)[number];

export interface State {
  chosen: Name;
  query: number[];
  keys: number[][];
  w: number[][];
  w_q: number[][];
  w_k: number[][];
  v: number[];
  w_qk: number[][];
  w_places: number[][];
  width: number;
  temperature: number;
  window: number;
  v_place: number[];
}

export interface Row {
  name: Name;
  formula: string;
  scores: number[];
  weights: number[];
  output: number[];
  leaders: number[];
  entropy: number;
}

export interface Shown {
  query: number[];
  keys: number[][];
  rows: Row[];
  scores: number[];
  weights: number[];
  output: number[];
  local: { place: number; window: number; weights: number[]; total: number; output: number[] };
}
