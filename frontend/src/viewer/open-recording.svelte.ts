import { isAbort, ApiError } from '$lib/api';
import { headsOf, keyOf, type Head } from './heads';
import type { ArrayResult, Metadata, Profile, Source } from './source';

const POLL = 600;
export const SIDE = 64;

/** A recording that is looked at: what is in it, what its heads do, and their small pictures. */
export class OpenRecording {
  meta = $state.raw<Metadata | null>(null);
  failure = $state.raw<ApiError | null>(null);
  profiles = $state.raw<Map<string, Profile>>(new Map());
  /** How much of the profiles is known, 0 to 1. */
  measured = $state(0);
  /** By entry and batch. */
  readonly #thumbs = new Map<string, Promise<ArrayResult>>();
  readonly #stop = new AbortController();

  constructor(
    readonly source: Source,
    readonly id: string,
  ) {
    void this.open();
  }

  heads(step: number): Head[] {
    return this.meta ? headsOf(this.meta, step) : [];
  }

  async open(): Promise<void> {
    try {
      this.meta = await this.source.meta(this.id);
      this.failure = null;
    } catch (error) {
      this.failure = error instanceof ApiError ? error : new ApiError(String(error), 0);
    }
  }

  /** Ask until all is known, or nobody is here any more. */
  async measure(): Promise<void> {
    while (this.measured < 1 && !this.#stop.signal.aborted) {
      try {
        const found = await this.source.profiles(this.id, this.#stop.signal);
        this.measured = found.progress;
        if (found.rows) this.profiles = new Map(found.rows.map((row) => [keyOf(row), row]));
      } catch (error) {
        if (!isAbort(error)) this.measured = 1; // what cannot be measured is not shown; the pictures are
        return;
      }
      if (this.measured < 1) await new Promise((done) => setTimeout(done, POLL));
    }
  }

  /** (heads, side, side) of one call. */
  thumbs(entry: number, batch: number): Promise<ArrayResult> {
    const key = `${entry}/${batch}`;
    const found = this.#thumbs.get(key) ?? this.source.thumbs(this.id, entry, batch, SIDE, this.#stop.signal);
    this.#thumbs.set(key, found);
    found.catch(() => this.#thumbs.delete(key));
    return found;
  }

  close(): void {
    this.#stop.abort();
  }
}
