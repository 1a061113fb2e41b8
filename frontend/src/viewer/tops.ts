import type { Pool } from './source';

/**
 * The value with the strongest colour, for each level: coarse pixels are means of many cells, and small.
 *
 * What is on the screen has one scale, that of the level that is looked for, and two maps that are compared share it.
 */
export class Tops {
  /** Grows whenever a top does. */
  version = 0;
  readonly #tops = new Map<string, number>();
  readonly #heard = new Set<() => void>();

  /** Of this level, or of the nearest that has been seen. */
  of(pool: Pool, level: number): number {
    for (let by = 0; by < 32; by++) {
      const found = this.#tops.get(`${pool}/${level + by}`) ?? this.#tops.get(`${pool}/${level - by}`);
      if (found !== undefined) return found;
    }
    return 0;
  }

  see(pool: Pool, level: number, value: number): void {
    const key = `${pool}/${level}`;
    if (!(value > (this.#tops.get(key) ?? 0))) return;
    this.#tops.set(key, value);
    this.version++;
    for (const hear of this.#heard) hear();
  }

  listen(hear: () => void): () => void {
    this.#heard.add(hear);
    return () => this.#heard.delete(hear);
  }
}
