/** Types of the state and the answer of `regard.lab.pages.heads`. */
export interface State {
  sentence: string;
  layer: number;
  head: number;
}

export type Kind = 'first' | 'previous' | 'next' | 'itself' | 'separators' | 'broad' | 'mixed';

export interface Head {
  kind: Kind;
  share: number | null;
  text: { en: string; zh: string };
  pair: { query: number; key: number; weight: number } | null;
  entropy: number;
  saturation: number;
  distance: number;
  first: number;
  previous: number;
  next: number;
  itself: number;
  separators: number;
  verdict: 'saturated' | 'fine';
}

export interface Shown {
  tokens: string[];
  layers: string[];
  layer: number;
  head: number;
  sizes: { heads: number; head_dim: number; width: number };
  weights: number[][][];
  heads: Head[];
  unknown: string[];
}
