/** Types of the state and the answer of `regard.lab.pages.bottleneck`. */
export const MODELS = ['none', 'bahdanau'] as const;
export const TABLE_MODELS = ['gru', 'lstm', 'bahdanau', 'luong', 'local', 'transformer'] as const;
export const BINS = ['1-10', '11-20', '21-30', '31-40', '41-50', '51-60'] as const;
export type TableModel = (typeof TABLE_MODELS)[number];
export type Data = 'numbers' | 'en-fr';
export type Measure = 'exact_match' | 'bleu';

export interface State {
  longest: number;
  hidden: number;
  steps: number;
  pairs: number;
  seed: number;
  words: number;
  data: Data;
  trained_words: number;
  measure: Measure;
}

/** One number for each of MODELS. */
export type Both = [number, number];

export interface Sample {
  source: string[];
  target: string;
  translations: [string, string];
  tokens: string[];
  /** For each token the places of the source with the largest weights, best first, and these weights. */
  attended: [number, number][][];
}

export interface Row {
  words: string;
  sentences: number;
  exact_match: number | null;
  bleu: number | null;
  chrf: number | null;
}

/** Where a cell of the stored table stands. */
export interface Place {
  data: Data;
  trained_words: number;
  model: TableModel;
}

export interface Cell extends Place {
  rows: Row[];
  seed: number;
  minutes: number;
  steps: number;
  threads: number;
}

export interface Shown {
  models: string[];
  lengths: number[];
  longest: number;
  at: number;
  memory: { words: number; hidden: number; fixed: number; attention: number; per_word: number };
  exact_match: [number[], number[]] | null;
  losses: [number[], number[]] | null;
  samples: Sample[] | null;
  seconds: number | null;
  table: Cell[];
  missing: Place[];
  printed: { model: string; bleu: number }[];
}

/** One event of `train`. */
export interface Step {
  step: number;
  seconds: number;
  losses?: Both;
  length?: number;
  exact_match?: Both;
  sample?: Sample;
  done?: boolean;
  busy?: boolean;
  error?: string;
}
