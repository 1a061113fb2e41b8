import type { ArrayResult, HeadKey, Info, Pool, Source } from './source';

/** What a map asks of its source; `peaks` only where rows are divided by their own maximum. */
export type MapSource = Pick<Source, 'info' | 'tile' | 'row' | 'column'> & Partial<Pick<Source, 'peaks'>>;

export interface Minuend {
  source: MapSource;
  place: HeadKey;
}

const KEPT = 64; // rows, as many as a cursor keeps

/**
 * The map of A - B for two heads with as many queries and keys.
 *
 * A coarse pixel is the mean of differences, which is the difference of means; the maximum has no such rule, so pixels
 * are means whatever is asked, and rows are not divided by their own maximum.
 */
export class Difference implements MapSource {
  readonly #rows = new Map<number, [Float32Array, Float32Array]>();

  constructor(
    readonly a: Minuend,
    readonly b: Minuend,
  ) {}

  /** Exact weights of a cell in A and in B, if its row is known. */
  pair(row: number, column: number): { a: number; b: number } | null {
    const found = this.#rows.get(row);
    return found ? { a: found[0][column], b: found[1][column] } : null;
  }

  async info(_: HeadKey, signal?: AbortSignal): Promise<Info> {
    const [a, b] = await this.#both((side) => side.source.info(side.place, signal));
    return {
      ...a,
      exact: a.exact && b.exact,
      progress: Math.min(a.progress, b.progress),
      max: null,
      empty: common(a.empty, b.empty),
    };
  }

  async tile(_: HeadKey, __: Pool, level: number, row: number, column: number, signal?: AbortSignal): Promise<ArrayResult> {
    return minus(await this.#both((side) => side.source.tile(side.place, 'mean', level, row, column, signal)));
  }

  async row(_: HeadKey, i: number, signal?: AbortSignal): Promise<ArrayResult> {
    const [a, b] = await this.#both((side) => side.source.row(side.place, i, signal));
    this.#rows.set(i, [a.values, b.values]);
    for (const old of this.#rows.keys()) {
      if (this.#rows.size <= KEPT) break;
      this.#rows.delete(old);
    }
    return minus([a, b]);
  }

  async column(_: HeadKey, j: number, signal?: AbortSignal): Promise<ArrayResult> {
    return minus(await this.#both((side) => side.source.column(side.place, j, signal)));
  }

  #both<T>(ask: (side: Minuend) => Promise<T>): Promise<[T, T]> {
    return Promise.all([ask(this.a), ask(this.b)]);
  }
}

function minus([a, b]: [ArrayResult, ArrayResult]): ArrayResult {
  return { shape: a.shape, exact: a.exact && b.exact, values: a.values.map((value, i) => value - b.values[i]) };
}

type Runs = [number, number][];

/** Runs [start, stop) that are in both lists. */
export function common(a: Runs, b: Runs): Runs {
  return a.flatMap(([start, stop]) =>
    b.map(([from, to]): [number, number] => [Math.max(start, from), Math.min(stop, to)]).filter(([low, high]) => low < high),
  );
}
