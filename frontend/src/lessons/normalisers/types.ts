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
}

export interface Row {
  name: Name;
  weights: number[];
  total: number;
  support: number;
  entropy: number | null;
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
}
