import { events } from '$lib/api';
import type { State, Step } from './types';

/** Learning w on the server, step by step, as it comes; leaving or stopping ends it there too. */
export class Training {
  running = $state(false);
  losses = $state.raw<number[]>([]);
  last = $state.raw<Step | null>(null);
  /** The newest curve that came. */
  prediction = $state.raw<number[] | null>(null);
  #stop: AbortController | null = null;

  /** The w it ends with; null if not even one step came. */
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
