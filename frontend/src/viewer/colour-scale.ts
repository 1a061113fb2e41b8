import { DIVERGING, table, type MapName, type Table } from '$lib/colours';

/** Settings of the colour scale. */
export interface ColourScale {
  map: MapName;
  dark: boolean;
  log: boolean;
  gamma: number;
  /** Whether each row is divided by its largest pixel. */
  rows: boolean;
  /** Number of pixel columns at the left edge of a map that have no colour, 0 or 1: the first token, if it is hidden. */
  skip: number;
  /** Whether values are differences: 0 is in the middle of the scale, and `map` does not count. */
  signed: boolean;
}

/** Range of the logarithmic scale, in powers of ten. */
export const DECADES = 4;
const STEPS = 2048;
const NOT_A_NUMBER = 0xff808080;

/** Position on the scale, 0 to 1, of a value up to `top`. */
export function share(value: number, top: number, ink: Pick<ColourScale, 'log' | 'gamma'>): number {
  if (!(value > 0) || !(top > 0)) return 0;
  const plain = ink.log ? 1 + Math.log10(value / top) / DECADES : value / top;
  return Math.min(1, Math.max(0, plain)) ** ink.gamma;
}

/** Position on the whole scale, 0 to 1, of a value: a difference of 0 is at 0.5. */
export function position(value: number, top: number, ink: Pick<ColourScale, 'log' | 'gamma' | 'signed'>): number {
  if (!ink.signed) return share(value, top, ink);
  return 0.5 + (Math.sign(value) * share(Math.abs(value), top, ink)) / 2;
}

export const coloursOf = ({ map, dark, signed }: Pick<ColourScale, 'map' | 'dark' | 'signed'>): Table =>
  table(signed ? DIVERGING : map, dark);

/** The value at a position on the scale of values from 0, for the colour bar. */
export function valueAt(at: number, top: number, ink: Pick<ColourScale, 'log' | 'gamma'>): number {
  const plain = at ** (1 / ink.gamma);
  return ink.log ? top * 10 ** ((plain - 1) * DECADES) : plain * top;
}

/** Converts values to pixels by table lookup; the nonlinearity of the scale is part of the table. */
export class TilePainter {
  readonly #colours: Uint32Array;
  /** Colours of the values below 0. */
  readonly #below: Uint32Array;
  readonly #log: boolean;

  constructor(readonly ink: ColourScale) {
    this.#log = ink.log;
    this.#colours = this.#ramp(1);
    this.#below = ink.signed ? this.#ramp(-1) : this.#colours;
  }

  #ramp(sign: 1 | -1): Uint32Array {
    const { ink } = this;
    const map = coloursOf(ink);
    const colours = new Uint32Array(STEPS + 1);
    for (let i = 0; i <= STEPS; i++) {
      // The table of a linear scale is indexed by the square root, so that small values keep separate entries.
      const plain = (ink.log ? i / STEPS : (i / STEPS) ** 2) ** ink.gamma;
      const at = Math.round(255 * (ink.signed ? 0.5 + (sign * plain) / 2 : plain)) * 3;
      colours[i] = (255 << 24) | (map[at + 2] << 16) | (map[at + 1] << 8) | map[at];
    }
    return colours;
  }

  /**
   * `tops`: the value with the strongest colour, one for all or one for each row. The first `skip` columns are left
   * transparent.
   */
  paint(values: Float32Array, columns: number, tops: number | Float32Array, out: Uint32Array, skip = 0): void {
    const rows = columns ? values.length / columns : 0;
    const { signed } = this.ink;
    const log = this.#log;
    for (let row = 0, at = 0; row < rows; row++) {
      const top = typeof tops === 'number' ? tops : tops[row];
      const scale = top > 0 ? 1 / top : 0;
      for (let end = at + columns; at < end; at++) {
        const value = signed ? Math.abs(values[at]) * scale : values[at] * scale;
        const colours = values[at] < 0 ? this.#below : this.#colours;
        const plain = log ? (value > 0 ? 1 + Math.log10(value) / DECADES : 0) : Math.sqrt(value);
        out[at] = plain === plain ? colours[plain < 0 ? 0 : plain > 1 ? STEPS : (plain * STEPS + 0.5) | 0] : NOT_A_NUMBER;
      }
      out.fill(0, at - columns, at - columns + skip);
    }
  }

  image(values: Float32Array, columns: number, tops: number | Float32Array, skip = 0): ImageData {
    const image = new ImageData(Math.max(1, columns), Math.max(1, columns ? values.length / columns : 0));
    this.paint(values, columns, tops, new Uint32Array(image.data.buffer), skip);
    return image;
  }
}

/** The largest magnitude of a matrix, without its first `skip` columns. */
export function largest(values: Float32Array, columns = values.length, skip = 0): number {
  let top = 0;
  for (let start = 0; start < values.length; start += columns) {
    for (let at = start + skip; at < start + columns; at++) {
      const size = Math.abs(values[at]);
      if (size > top) top = size;
    }
  }
  return top;
}
