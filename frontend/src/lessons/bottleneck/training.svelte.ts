import { ApiError, events } from '$lib/api';
import type { Both, Sample, State, Step } from './types';

export interface Tested {
  exact: Both;
  sample: Sample;
}

/** What a training has reached. */
export interface Progress {
  losses: [number[], number[]];
  /** By the length of the sentences. */
  tested: Map<number, Tested>;
}

/** The fields of the state on which a training depends. */
export function basisOf({ longest, hidden, steps, pairs, seed }: State): string {
  return JSON.stringify([longest, hidden, steps, pairs, seed]);
}

/** Training of both models on the server; stopping or leaving the page also stops the server. */
export class Training {
  running = $state(false);
  /** Whether another training runs on the server. */
  busy = $state(false);
  step = $state(0);
  seconds = $state(0);
  progress = $state.raw<Progress | null>(null);
  /** What the progress belongs to. */
  basis = $state('');
  #stop: AbortController | null = null;

  /** Whether it came to its end. */
  async run(state: State): Promise<boolean> {
    this.stop();
    const stop = (this.#stop = new AbortController());
    Object.assign(this, { running: true, busy: false, step: 0, seconds: 0, progress: null, basis: basisOf(state) });
    try {
      const query = encodeURIComponent(JSON.stringify(state));
      for await (const step of events<Step>(`/api/lessons/bottleneck/train?state=${query}`, { signal: stop.signal })) {
        if (step.error) throw new ApiError(step.error, 422);
        if (step.busy) this.busy = true;
        else this.#take(step);
        if (step.done) return true;
      }
    } finally {
      if (this.#stop === stop) this.running = false;
    }
    return false;
  }

  stop(): void {
    this.#stop?.abort();
    this.running = false;
  }

  #take(step: Step): void {
    this.step = step.step;
    this.seconds = step.seconds;
    const before = this.progress ?? { losses: [[], []], tested: new Map<number, Tested>() };
    if (step.losses) {
      const [none, attention] = before.losses;
      const losses: [number[], number[]] = [[...none, step.losses[0]], [...attention, step.losses[1]]];
      this.progress = { ...before, losses };
    }
    if (step.length !== undefined && step.exact_match && step.sample) {
      const tested = new Map(before.tested).set(step.length, { exact: step.exact_match, sample: step.sample });
      this.progress = { ...before, tested };
    }
  }
}
