import { isAbort } from '$lib/api';
import type { HeadKey, Source } from './source';

/** Weights from and to the selected token. */
export class TokenWeights {
  token = $state(-1);
  /** Its weights on all keys, and the weights of all queries on it. */
  gives = $state.raw<Float32Array | null>(null);
  gets = $state.raw<Float32Array | null>(null);
  /** The token that the weights belong to: the previous one until the answer arrives. */
  shown = $state(-1);
  #stop: AbortController | null = null;

  constructor(
    readonly source: Source,
    readonly place: HeadKey,
    readonly n: number,
    readonly m: number,
  ) {}

  at(token: number): void {
    if (token === this.token) return;
    this.token = token;
    this.#stop?.abort();
    if (token < 0) {
      this.gives = this.gets = null;
      this.shown = -1;
      return;
    }
    void this.#ask(token);
  }

  leave(): void {
    this.#stop?.abort();
  }

  async #ask(token: number): Promise<void> {
    const { signal } = (this.#stop = new AbortController());
    const none = Promise.resolve(null);
    const [row, column] = await Promise.allSettled([
      token < this.n ? this.source.row(this.place, token, signal) : none,
      token < this.m ? this.source.column(this.place, token, signal) : none,
    ]);
    if (signal.aborted) return;
    for (const one of [row, column]) if (one.status === 'rejected' && !isAbort(one.reason)) console.warn(one.reason);
    this.gives = row.status === 'fulfilled' ? (row.value?.values ?? null) : null;
    this.gets = column.status === 'fulfilled' ? (column.value?.values ?? null) : null;
    this.shown = token;
  }
}

/** Indices of the largest values, in descending order. */
export function largestOf(values: Float32Array, count: number): number[] {
  const found: number[] = [];
  for (let i = 0; i < values.length; i++) {
    if (!(values[i] > 0)) continue;
    if (found.length === count && values[i] <= values[found[count - 1]]) continue;
    let at = found.length;
    while (at > 0 && values[found[at - 1]] < values[i]) at--;
    found.splice(at, 0, i);
    if (found.length > count) found.pop();
  }
  return found;
}
