import type { DeepZoom } from './deep-zoom';

/** Maps side by side that move together: the others follow the one that the user moves. */
export class LinkedMaps {
  readonly #all = new Set<DeepZoom>();
  #leader: DeepZoom | null = null;

  join(deep: DeepZoom): () => void {
    this.#all.add(deep);
    this.#leader ??= deep;
    return () => {
      this.#all.delete(deep);
      if (this.#leader === deep) this.#leader = this.#all.values().next().value ?? null;
    };
  }

  lead(deep: DeepZoom): void {
    this.#leader = deep;
  }

  leads(deep: DeepZoom): boolean {
    return this.#leader === deep;
  }

  moved(deep: DeepZoom): void {
    if (!this.leads(deep)) return;
    for (const other of this.#all) if (other !== deep) other.follow(deep);
  }
}
