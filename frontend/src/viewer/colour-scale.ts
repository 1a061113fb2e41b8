import { table, type MapName } from '$lib/colours';

/** Settings of the colour scale. */
export interface ColourScale {
  map: MapName;
  dark: boolean;
  log: boolean;
  gamma: number;
  /** Whether each row is divided by its largest pixel. */
  rows: boolean;
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

/** The value at a position on the scale, for the colour bar. */
export function valueAt(at: number, top: number, ink: Pick<ColourScale, 'log' | 'gamma'>): number {
  const plain = at ** (1 / ink.gamma);
  return ink.log ? top * 10 ** ((plain - 1) * DECADES) : plain * top;
}

/** Converts values to pixels by table lookup; the nonlinearity of the scale is part of the table. */
export class TilePainter {
  readonly #colours: Uint32Array;
  readonly #log: boolean;

  constructor(readonly ink: ColourScale) {
    const map = table(ink.map, ink.dark);
    this.#log = ink.log;
    this.#colours = new Uint32Array(STEPS + 1);
    for (let i = 0; i <= STEPS; i++) {
      // The table of a linear scale is indexed by the square root, so that small values keep separate entries.
      const plain = ink.log ? i / STEPS : (i / STEPS) ** 2;
      const at = Math.round(255 * plain ** ink.gamma) * 3;
      this.#colours[i] = (255 << 24) | (map[at + 2] << 16) | (map[at + 1] << 8) | map[at];
    }
  }

  /** `tops`: the value with the strongest colour, one for all or one for each row. */
  paint(values: Float32Array, columns: number, tops: number | Float32Array, out: Uint32Array): void {
    const rows = columns ? values.length / columns : 0;
    const [colours, log] = [this.#colours, this.#log];
    for (let row = 0, at = 0; row < rows; row++) {
      const top = typeof tops === 'number' ? tops : tops[row];
      const scale = top > 0 ? 1 / top : 0;
      for (let end = at + columns; at < end; at++) {
        const value = values[at] * scale;
        const plain = log ? (value > 0 ? 1 + Math.log10(value) / DECADES : 0) : Math.sqrt(value);
        out[at] = plain === plain ? colours[plain < 0 ? 0 : plain > 1 ? STEPS : (plain * STEPS + 0.5) | 0] : NOT_A_NUMBER;
      }
    }
  }

  image(values: Float32Array, columns: number, tops: number | Float32Array): ImageData {
    const image = new ImageData(Math.max(1, columns), Math.max(1, columns ? values.length / columns : 0));
    this.paint(values, columns, tops, new Uint32Array(image.data.buffer));
    return image;
  }
}

export function largest(values: Float32Array): number {
  let top = 0;
  for (const value of values) if (value > top) top = value;
  return top;
}
