import { isAbort, ApiError } from '$lib/api';
import { headsOf, keyOf, type Head } from './heads';
import type { ArrayResult, Metadata, Profile, Source } from './source';

const POLL = 600;
export const SIDE = 64;

/** An open recording: its metadata, the profiles of its heads, and their thumbnails. */
export class OpenRecording {
  meta = $state.raw<Metadata | null>(null);
  failure = $state.raw<ApiError | null>(null);
  profiles = $state.raw<Map<string, Profile>>(new Map());
  /** Progress of the profiles, 0 to 1. */
  measured = $state(0);
  /** Thumbnails by entry and batch. */
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

  /** Polls until all profiles are known or the view is closed; those of the first layers come first. */
  async measure(): Promise<void> {
    while (this.measured < 1 && !this.#stop.signal.aborted) {
      try {
        const found = await this.source.profiles(this.id, this.#stop.signal);
        this.measured = found.progress;
        if (found.rows.length > this.profiles.size) this.profiles = new Map(found.rows.map((row) => [keyOf(row), row]));
      } catch (error) {
        if (!isAbort(error)) this.measured = 1; // without profiles the wall still shows the thumbnails
        return;
      }
      if (this.measured < 1) await new Promise((done) => setTimeout(done, POLL));
    }
  }

  /** Thumbnails of one call, (heads, side, side). */
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
