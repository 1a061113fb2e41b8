/** Types of the state and the answer of `regard.lab.pages.normalisers`. */
export type Name = 'softmax' | 'sparsemax' | 'entmax15' | 'sigmoid' | 'hard' | 'sample';

export interface State {
  scores: number[];
  temperature: number;
  chosen: Name;
  view: 'weights' | 'gradient';
  draws: number;
  seed: number;
  rewards: number[] | null;
  rate: number;
  step: number;
}

export interface Row {
  name: Name;
  weights: number[];
  total: number;
  support: number;
  entropy: number | null;
}

/** What draws teach, one after the other. */
export interface Learning {
  /** Before each draw and at the end. */
  scores: number[][];
  probabilities: number[][];
  expected: number[];
  /** Keys, counted from 0. */
  drawn: number[];
  earned: number[];
  baseline: number[];
}

export interface Shown {
  scores: number[];
  sharpened: number[];
  rows: Row[];
  weights: number[];
  normalised: boolean;
  probabilities: number[];
  counts: number[];
  shares: number[];
  rewards: number[];
  expected: number;
  earned: number;
  exact: number[];
  estimate: number[];
  spread: number[];
  baseline: number;
  calmer: number[];
  calmer_spread: number[];
  variance_ratio: number | null;
  learning: Learning | null;
}
