import { fixed, type Maybe } from './numbers';

/** Parts of formulas. `now` marks a current number, which is coloured. */
export const now = (tex: string | number): string => `\\htmlClass{now}{${tex}}`;

export const num = (value: Maybe, digits = 2): string => now(plain(value, digits));

export function plain(value: Maybe, digits = 2): string {
  return fixed(value, digits).replace('−', '{-}').replace('–', '\\text{–}');
}

export const vector = (values: Maybe[], digits = 2): string =>
  `\\begin{bmatrix} ${values.map((value) => plain(value, digits)).join(' & ')} \\end{bmatrix}`;

export const matrix = (rows: Maybe[][], digits = 2): string =>
  `\\begin{bmatrix} ${rows.map((row) => row.map((v) => plain(v, digits)).join(' & ')).join(' \\\\ ')} \\end{bmatrix}`;
