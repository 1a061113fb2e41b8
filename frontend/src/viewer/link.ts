import type { Deep } from './deep';

/** Maps side by side that move together: the one that is touched leads. */
export class Link {
  readonly #all = new Set<Deep>();
  #leader: Deep | null = null;

  join(deep: Deep): () => void {
    this.#all.add(deep);
    this.#leader ??= deep;
    return () => {
      this.#all.delete(deep);
      if (this.#leader === deep) this.#leader = this.#all.values().next().value ?? null;
    };
  }

  lead(deep: Deep): void {
    this.#leader = deep;
  }

  leads(deep: Deep): boolean {
    return this.#leader === deep;
  }

  moved(deep: Deep): void {
    if (!this.leads(deep)) return;
    for (const other of this.#all) if (other !== deep) other.follow(deep);
  }
}
