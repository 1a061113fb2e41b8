/** Types of the state and the answer of `regard.lab.pages.heatmaps`. */
export const KINDS = ['identity', 'random', 'heads'] as const;
export type Kind = (typeof KINDS)[number];

export interface State {
  kind: Kind;
  n: number;
  heads: number;
  shared: boolean;
  seed: number;
}

export interface Shown {
  weights: number[][][];
  sharpness: number[];
  largest: number[];
  limits: [number, number][];
  uniform: number;
}
