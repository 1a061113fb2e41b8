/** The limit shrinks only if the largest visible value falls below this share of it: colours should not flicker. */
const SLACK = 0.4;

/**
 * The value with the strongest colour: the largest visible value of all maps that are shown side by side.
 *
 * Coarse pixels are means of many cells and therefore small, and weights in the first rows of a causal map are up to a
 * thousand times those in its last: with one fixed scale most of a map would be blank. The colour bar shows the limit.
 */
export class ColourLimits {
  now = 0;
  /** Incremented whenever the limit changes. */
  version = 0;
  readonly #seen = new Map<object, number>();
  readonly #heard = new Map<object, () => void>();

  join(who: object, hear: () => void): void {
    this.#heard.set(who, hear);
  }

  leave(who: object): void {
    this.#heard.delete(who);
    this.#seen.delete(who);
    this.#settle();
  }

  /** Forgets what was reported, because values no longer count that did: the limit may shrink by any amount. */
  reset(): void {
    this.#seen.clear();
    this.now = 0;
    this.version++;
  }

  /** Reports the largest visible value of one map. */
  see(who: object, value: number): void {
    this.#seen.set(who, value);
    this.#settle();
  }

  #settle(): void {
    const top = Math.max(0, ...this.#seen.values());
    if (top === this.now || (top < this.now && top > SLACK * this.now && this.#seen.size)) return;
    this.now = top;
    this.version++;
    for (const hear of this.#heard.values()) hear();
  }
}
