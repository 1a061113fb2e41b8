import { prefersReducedMotion } from 'svelte/motion';
import { events } from '$lib/api';
import type { State, Step } from './types';

/** Steps of learning shown in a second. */
export const SPEEDS = [5, 20, 60];

/**
 * Learning w: the server streams its steps, and they are played at a speed that can be watched, or one by one. Leaving the
 * page also stops the server.
 */
export class Training {
  path = $state.raw<Step[]>([]);
  /** How many steps of the path are shown. */
  shown = $state(0);
  playing = $state(false);
  speed = $state(20);
  /** The settings that the path was learned from. */
  basis = $state<string | null>(null);
  readonly last = $derived<Step | null>(this.path[this.shown - 1] ?? null);
  readonly losses = $derived(this.path.slice(0, this.shown).map((step) => step.loss));
  #stop: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Shows one more step, or `by` more; without a path for this basis it is requested first. */
  async step(state: State, basis: string, by = 1): Promise<void> {
    this.pause();
    if (basis !== this.basis) await this.#request(state, basis);
    this.shown = Math.min(this.path.length, Math.max(1, this.shown + by));
  }

  async play(state: State, basis: string): Promise<void> {
    if (basis !== this.basis) await this.#request(state, basis);
    if (this.shown >= this.path.length) this.shown = 0;
    this.playing = this.path.length > 0;
    this.#next();
  }

  pause(): void {
    clearTimeout(this.#timer);
    this.playing = false;
  }

  stop(): void {
    this.pause();
    this.#stop?.abort();
  }

  #next(): void {
    if (!this.playing) return;
    this.shown = prefersReducedMotion.current ? this.path.length : this.shown + 1;
    if (this.shown >= this.path.length) this.pause();
    else this.#timer = setTimeout(() => this.#next(), 1000 / this.speed);
  }

  async #request(state: State, basis: string): Promise<void> {
    this.stop();
    const stop = (this.#stop = new AbortController());
    const path: Step[] = [];
    const query = encodeURIComponent(JSON.stringify({ ...state, mode: 'learned', learned: null }));
    for await (const step of events<Step>(`/api/lessons/regression/train?state=${query}`, { signal: stop.signal })) {
      if (!step.done) path.push(step);
    }
    if (stop.signal.aborted) return;
    Object.assign(this, { path, shown: 0, basis });
  }
}
