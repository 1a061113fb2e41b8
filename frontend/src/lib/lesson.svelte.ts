import { readFields, writeFields } from './address';
import { language, type Language } from './language.svelte';
import { isAbort, ApiError, show, type Answer } from './api';
import { route } from './route.svelte';

/** Milliseconds after which a pending request is aborted in favour of a newer one. */
const MAX_WAIT = 400;
/** Milliseconds between two changes of the address: browsers refuse one at every frame. */
const ADDRESS_PAUSE = 200;

/**
 * One lesson: the state that the user changes, and the answer of the server for it.
 *
 * Only one request is pending at a time, and the latest state waits for it: a drag shows as many answers as the server
 * can compute, and always the last. While an answer is pending or refused, the previous one stays visible.
 */
export class Lesson<State extends object, Shown> {
  state: State = $state()!;
  answer = $state.raw<Answer<State, Shown> | null>(null);
  failure = $state.raw<ApiError | null>(null);
  /** Whether a request is pending. */
  busy = $state(false);

  readonly name: string;
  readonly defaults: State;
  #asked = '';
  #waiting: State | null = null;
  #underWay: { since: number; stop: AbortController } | null = null;
  #address: ReturnType<typeof setTimeout> | undefined;

  constructor(name: string, defaults: State, query: string) {
    this.name = name;
    this.defaults = 'language' in defaults ? { ...defaults, language: language.now } : defaults;
    this.state = readFields(query, this.defaults);
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

  /** Reads the state from the address after the user has changed it. */
  readAddress(query: string): void {
    Object.assign(this.state, readFields(query, this.defaults));
  }

  /** A state with the field `language` begins with texts in the language of the page, also when that changes. */
  #followLanguage(): void {
    const defaults = this.defaults as { language?: Language };
    const state = this.state as { language?: Language };
    if (!defaults.language || defaults.language === language.now) return;
    if (state.language === defaults.language) state.language = language.now;
    defaults.language = language.now;
  }

  /** To be run in an effect: requests an answer for the changed state, and writes the state to the address. */
  follow(): void {
    this.#followLanguage();
    const state = $state.snapshot(this.state) as State;
    clearTimeout(this.#address);
    this.#address = setTimeout(() => this.#writeAddress(state), this.#asked ? ADDRESS_PAUSE : 0);
    this.#want(state);
  }

  /** Repeats the request that failed. */
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
    else if (performance.now() - this.#underWay.since > MAX_WAIT) this.#underWay.stop.abort();
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
