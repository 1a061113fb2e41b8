import { events } from '$lib/api';
import type { State, Step } from './types';

/** Training of w on the server, streamed step by step; stopping or leaving the page also stops the server. */
export class Training {
  running = $state(false);
  losses = $state.raw<number[]>([]);
  last = $state.raw<Step | null>(null);
  /** The latest curve received. */
  prediction = $state.raw<number[] | null>(null);
  #stop: AbortController | null = null;

  /** The final w; null if no step was received. */
  async run(state: State): Promise<number | null> {
    this.stop();
    const stop = (this.#stop = new AbortController());
    Object.assign(this, { running: true, losses: [], last: null, prediction: null });
    try {
      const query = encodeURIComponent(JSON.stringify({ ...state, mode: 'learned', learned: null }));
      for await (const step of events<Step>(`/api/lessons/regression/train?state=${query}`, { signal: stop.signal })) {
        this.last = step;
        if (step.loss !== undefined) this.losses = [...this.losses, step.loss];
        if (step.prediction) this.prediction = step.prediction;
      }
    } finally {
      if (this.#stop === stop) this.running = false;
    }
    return (this.last as Step | null)?.w ?? null;
  }

  stop(): void {
    this.#stop?.abort();
    this.running = false;
  }
}
