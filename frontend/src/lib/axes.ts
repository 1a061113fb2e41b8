/** What a plot shows, and its geometry: from values to pixels and back, ticks of a logarithmic axis, lines, arrows. */

export interface Series {
  name: string;
  x: number[];
  y: (number | null)[];
  kind?: 'line' | 'columns';
  colour?: string;
  dashed?: boolean;
  testid?: string;
}

export interface Dot {
  x: number;
  y: number;
  /** Opacity, 0 to 1. */
  strength?: number;
  /** Text beside the dot. */
  name?: string;
  /** `first` is highlighted, `ring` is not filled. */
  mark?: 'first' | 'ring';
  /** Whether this dot cannot be dragged although others can. */
  still?: boolean;
}

/** The pixels of values on an axis that runs from `start` to `end`, and the values of pixels. */
export function scale(from: number, to: number, log: boolean, start: number, end: number) {
  const f = log ? Math.log10 : (v: number) => v;
  const span = f(to) - f(from) || 1;
  return {
    to: (v: number) => start + ((f(v) - f(from)) / span) * (end - start),
    back: (p: number) => {
      const value = f(from) + ((p - start) / (end - start)) * span;
      return log ? 10 ** value : value;
    },
  };
}

/** The powers of ten between two numbers. */
export function powers(from: number, to: number): number[] {
  const found: number[] = [];
  for (let k = Math.ceil(Math.log10(from) - 1e-9); 10 ** k <= to * 1.000001; k++) found.push(10 ** k);
  return found;
}

/** SVG path of a line, with a gap at each missing value. */
export function line(one: Series, toX: (x: number) => number, toY: (y: number) => number): string {
  let pen = 'M';
  let path = '';
  one.y.forEach((value, i) => {
    if (value !== null) path += `${pen}${toX(one.x[i]).toFixed(1)} ${toY(value).toFixed(1)}`;
    pen = value === null ? 'M' : 'L';
  });
  return path;
}

/** SVG path of an arrow whose tip touches a dot. */
export function arrow(fromX: number, fromY: number, toX: number, toY: number): string {
  const length = Math.hypot(toX - fromX, toY - fromY);
  if (length < 16) return '';
  const [ux, uy] = [(toX - fromX) / length, (toY - fromY) / length];
  const [tipX, tipY] = [toX - 8 * ux, toY - 8 * uy];
  const wing = (side: number) => `${tipX - 8 * ux + 4 * side * uy} ${tipY - 8 * uy - 4 * side * ux}`;
  return `M${fromX} ${fromY}L${tipX} ${tipY}M${wing(1)}L${tipX} ${tipY}L${wing(-1)}`;
}
