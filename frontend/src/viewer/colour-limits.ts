/** It becomes smaller only when what is on the screen is this much fainter: colours that jump tell nothing. */
const SLACK = 0.4;

/**
 * The value with the strongest colour: the largest on the screen, for all maps that are shown side by side.
 *
 * Coarse pixels are means of many cells and small, and the first rows of a causal map are a thousand times its last: one
 * scale for all would show most of it as nothing. The colour bar says which scale it is.
 */
export class ColourLimits {
  now = 0;
  /** Grows whenever the scale changes. */
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

  /** The largest that one of the maps shows. */
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
