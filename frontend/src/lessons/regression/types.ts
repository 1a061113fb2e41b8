/** Types of the state and the answer of `regard.lab.pages.regression`. */
export const KERNELS = [
  'gaussian', 'laplace', 'epanechnikov', 'boxcar', 'triangular', 'biweight', 'triweight', 'tricube', 'cosine',
] as const;
export type Kernel = (typeof KERNELS)[number];
export type Mode = 'average' | 'fixed' | 'learned';

export interface State {
  points: [number, number][] | null;
  n: number;
  seed: number;
  noise: number;
  mode: Mode;
  kernel: Kernel;
  w: number;
  learned: number | null;
  steps: number;
  rate: number;
}

export interface Numbers {
  training: number;
  left_out: number;
  truth: number;
  entropy: number;
  roughness: number;
}

export interface Fit {
  prediction: number[];
  weights: number[][];
  numbers: Numbers;
}

export interface Shown extends Fit {
  x_train: number[];
  y_train: number[];
  order: number[];
  x_test: number[];
  truth: number[];
  empty: number[];
  w: number | null;
  bandwidth: number | null;
  losses: number[];
  start: (Fit & { w: number }) | null;
  product: { left: number[]; right: number[]; result: number[] };
  example: { left: number[][][]; right: number[][][]; result: number[][][] };
  view: { x: [number, number]; y: [number, number] };
}

/** One event of `train`. */
export interface Step {
  step: number;
  w: number;
  loss: number;
  prediction?: number[];
  done?: boolean;
}
