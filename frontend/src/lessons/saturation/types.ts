/** Types of the state and the answer of `regard.lab.pages.saturation`. */
export interface State {
  d_k: number;
  scaled: boolean;
  keys: number;
  seed: number;
}

/** One number for each dimension d. */
export interface Curve {
  d_k: number[];
  variance: number[];
  error: number[];
  entropy: number[];
  saturation: number[];
  jacobian: number[];
  gradient: number[];
}

export interface Shown {
  d_k: number;
  scaled: boolean;
  mean: number;
  variance: number;
  expected: number;
  edges: number[];
  counts: number[];
  normal: number[];
  scores: number[];
  weights: number[];
  entropy: number;
  uniform: number;
  saturation: number;
  jacobian: number;
  largest: number;
  nudge: { size: number; weights: number[]; moved: number; mean_moved: number; flipped: number };
  curves: { scaled: Curve; unscaled: Curve };
}
