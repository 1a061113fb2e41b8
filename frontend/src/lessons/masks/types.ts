/** Types of the state and the answer of `regard.lab.pages.masks`. */
export const KINDS = ['causal', 'window', 'prefix', 'padding', 'segments', 'random'] as const;
export type Kind = (typeof KINDS)[number];

export interface Rule {
  kind: Kind;
  join: 'and' | 'or';
  negate: boolean;
  left: number;
  right: number;
  length: number;
  share: number;
  seed: number;
}

export interface State {
  n: number;
  m: number;
  align: 'top-left' | 'bottom-right' | null;
  rules: Rule[];
  seed: number;
}

export interface Shown {
  formula: string;
  expression: string;
  visible: boolean[][];
  weights: number[][];
  empty: number[];
  seen: number[];
  recipe: {
    visible: boolean[][];
    torch: (number | null)[][];
    regard: number[][];
    empty: number[];
    causal: number[][] | null;
  };
  message: string;
}

export const RULE: Rule = { kind: 'causal', join: 'and', negate: false, left: 2, right: 0, length: 2, share: 0.5, seed: 0 };
