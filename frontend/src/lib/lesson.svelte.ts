import { readFields, writeFields } from './address';
import { isAbort, ApiError, show, type Answer } from './api';
import { route } from './route.svelte';

/** An answer that is still on its way this long after it was asked for is given up when a newer one is wanted. */
const PATIENCE = 400;
/** Browsers refuse an address that changes at every frame. */
const REST = 200;

/**
 * One lesson: the state people change, and what the server makes of it.
 *
 * One question is under way at a time, and the newest state waits for it: a drag shows every answer the server has time
 * for, and ends with the last. While an answer is missing or refused, the one before it stays.
 */
export class Lesson<State extends object, Shown> {
  state: State = $state()!;
  answer = $state.raw<Answer<State, Shown> | null>(null);
  failure = $state.raw<ApiError | null>(null);
  /** Something is asked for that has not come. */
  busy = $state(false);

  readonly name: string;
  readonly defaults: State;
  #asked = '';
  #waiting: State | null = null;
  #underWay: { since: number; stop: AbortController } | null = null;
  #address: ReturnType<typeof setTimeout> | undefined;

  constructor(name: string, defaults: State, query: string) {
    this.name = name;
    this.defaults = defaults;
    this.state = readFields(query, defaults);
  }

  get shown(): Shown | null {
    return this.answer?.shown ?? null;
  }

  get touched(): boolean {
    return writeFields($state.snapshot(this.state) as State, this.defaults) !== '';
  }

  reset(): void {
    Object.assign(this.state, structuredClone(this.defaults));
  }

  /** Take the state from the address, when someone has written another there. */
  readAddress(query: string): void {
    Object.assign(this.state, readFields(query, this.defaults));
  }

  /** Run in an effect: whatever changes in the state is asked for, and written to the address. */
  follow(): void {
    const state = $state.snapshot(this.state) as State;
    clearTimeout(this.#address);
    this.#address = setTimeout(() => this.#writeAddress(state), this.#asked ? REST : 0);
    this.#want(state);
  }

  /** Ask once more for what was refused. */
  again(): void {
    this.#asked = '';
    this.follow();
  }

  leave(): void {
    clearTimeout(this.#address);
    this.#waiting = null;
    this.#underWay?.stop.abort();
  }

  #writeAddress(state: State): void {
    route.write([this.name], writeFields(state, this.defaults));
  }

  #want(state: State): void {
    const text = JSON.stringify(state);
    if (text === this.#asked) return;
    this.#asked = text;
    this.#waiting = state;
    this.busy = true;
    if (!this.#underWay) void this.#askOn();
    else if (performance.now() - this.#underWay.since > PATIENCE) this.#underWay.stop.abort();
  }

  async #askOn(): Promise<void> {
    while (this.#waiting) {
      const state = this.#waiting;
      this.#waiting = null;
      await this.#askFor(state);
    }
    this.#underWay = null;
    this.busy = false;
  }

  async #askFor(state: State): Promise<void> {
    const stop = new AbortController();
    this.#underWay = { since: performance.now(), stop };
    try {
      this.answer = await show<State, Shown>(this.name, state, stop.signal);
      this.failure = null;
    } catch (error) {
      if (isAbort(error)) return;
      this.failure = error instanceof ApiError ? error : new ApiError(String(error), 0);
    }
  }
}
