import type { Name } from './types';

export const formulas: Record<Name, string> = {
  softmax: 'p_j = \\frac{e^{z_j}}{\\sum_i e^{z_i}}',
  sparsemax: 'p = \\arg\\min_{p \\in \\Delta} \\lVert p - z \\rVert^2,\\quad p_j = \\max(0, z_j - \\tau)',
  entmax15: 'p_j = \\max(0, z_j/2 - \\tau)^2',
  sigmoid: 'p_j = \\frac{1}{1 + e^{-z_j}}',
  hard: 'p_j = [\\, j = \\arg\\max_i z_i \\,]',
  sample: 'p_j = [\\, j = J \\,],\\quad J \\sim \\operatorname{softmax}(z)',
};
