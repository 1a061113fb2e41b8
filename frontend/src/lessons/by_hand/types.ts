/** Types of the state and the answer of `regard.lab.pages.by_hand`. */
export interface State {
  tokens: number[][];
  scaled: boolean;
}

export interface Shown {
  tokens: number[][];
  d_k: number;
  scale: number;
  products: number[][];
  scores: number[][];
  logsumexp: number[];
  weights: number[][];
  output: number[][];
  leaders: number[][];
  ties: number[];
}
