/** Types of the state and the answer of `regard.lab.pages.translation`. */
export const DIRECTIONS = ['en-fr', 'numbers'] as const;
export type Direction = (typeof DIRECTIONS)[number];
export const MODELS = ['bahdanau', 'transformer', 'none'] as const;
export type Model = (typeof MODELS)[number];

export interface State {
  direction: Direction;
  model: Model;
  text: string | null;
  step: number;
  head: number | null;
  row: number | null;
  column: number | null;
  view: 'lines' | 'map';
}

export interface Candidate {
  token: string;
  probability: number;
}

/** For several heads: rows of each head. */
export type Heads = number[][][];

export interface Shown {
  direction: Direction;
  models: Record<Direction, Model[]>;
  figures: Partial<Record<Model, { exact_match: number; bleu: number }>>;
  examples: Record<Direction, string[]>;
  source_text: string;
  text: string;
  expected: string | null;
  finished: boolean;
  source: string[];
  target: string[];
  unknown: string[];
  at: number;
  probabilities: number[];
  candidates: Candidate[][];
  weights: Heads | null;
  query: Heads | null;
  key: Heads;
  value: Heads;
  context: Heads;
  widths: { query: number | null; value: number };
  output: number[][];
  layer: number | null;
  layers: number | null;
}
