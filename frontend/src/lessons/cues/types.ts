/** Types of the state and the answer of `regard.lab.pages.cues`. */
export type SceneName = 'desk' | 'room' | 'cats' | 'library' | 'photo';
export type Pooling = 'average' | 'max' | 'learned' | 'query';

export interface State {
  scene: SceneName;
  pooling: Pooling;
  /** Null means the default of the scene. */
  query: number[] | null;
  saliency: number[] | null;
}

type Both<T> = { en: T; zh: T };

export interface Look {
  weights: number[];
  winner: number | null;
}

export interface Shown {
  names: Both<string[]>;
  features: Both<string[]>;
  query_text: Both<string>;
  own_query: boolean;
  keys: number[][];
  values: number[][];
  query: number[];
  saliency: number[];
  scores: number[] | null;
  weights: number[] | null;
  output: number[];
  pooled: number[];
  sources: number[] | null;
  winner: number | null;
  leaders: number[];
  total: number | null;
  entropy: number | null;
  effective: number | null;
  bottom_up: Look;
  top_down: Look;
}
