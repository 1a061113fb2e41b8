/** Types of the state and the answer of `regard.lab.pages.block`. */
import type { Maybe } from '$lib/numbers';

export type Rows = number[][];
export const MATRICES = ['tokens', 'w_q', 'w_k', 'w_v', 'w_o', 'w_1', 'w_2'] as const;
export type MatrixName = (typeof MATRICES)[number];

export interface State extends Record<MatrixName, Rows> {
  part: 'tokens' | 'model';
  stage: number;
  token: number;
  causal: boolean;
  text: string;
  position: number | null;
  layer: number;
}

export interface TokensShown {
  part: 'tokens';
  sizes: { tokens: number; width: number; heads: number; head_dim: number; hidden: number };
  query: Rows;
  key: Rows;
  value: Rows;
  scores: Maybe[][][];
  weights: Rows[];
  pooled: Rows[];
  joined: Rows;
  attention: Rows;
  sum_1: Rows;
  mean_1: number[];
  deviation_1: number[];
  norm_1: Rows;
  inner: Rows;
  feed_forward: Rows;
  sum_2: Rows;
  mean_2: number[];
  deviation_2: number[];
  output: Rows;
  logits: Rows;
  probabilities: Rows;
}

export const PARTS = ['before', 'norm_1', 'attention', 'between', 'norm_2', 'feed_forward', 'after'] as const;
export type Part = (typeof PARTS)[number];

export interface Candidates {
  tokens: string[];
  probabilities: number[];
}

export interface ModelShown {
  part: 'model';
  loading: false;
  model: { layers: number; heads: number; key_heads: number; head_dim: number; width: number; hidden: number; vocabulary: number };
  pieces: string[];
  at: number;
  layer: number;
  weights: Rows;
  vectors: Record<Part, number[]>;
  output: number[];
  lengths: Record<Part, number[]>;
  lens: (Candidates & { last: number; rank: number })[];
  candidates: Candidates;
}

/** While the model is being loaded there is nothing to show. */
export interface Loading {
  part: 'model';
  loading: true;
}

export type Shown = TokensShown | ModelShown | Loading;
