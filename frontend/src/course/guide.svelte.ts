import type { GuidedStep } from '$lib/guide';
import type { Lesson } from '$lib/lesson.svelte';

/** The guided steps of one lesson, and the one that is shown. */
export class Guide {
  /** The current step, or null when the guide is closed. */
  at = $state<number | null>(null);

  constructor(
    readonly lesson: Lesson<any, unknown>,
    readonly steps: readonly GuidedStep<object>[],
  ) {}

  get step(): GuidedStep<object> | null {
    return this.at === null ? null : (this.steps[this.at] ?? null);
  }

  /** Shows a step: the defaults, changed by all steps up to this one, so that every way to it leads to the same state. */
  go(at: number): void {
    const set = this.steps.slice(0, at + 1).map((step) => step.state);
    Object.assign(this.lesson.state, structuredClone(Object.assign({}, this.lesson.defaults, ...set)));
    this.at = at;
  }

  /** Goes on, and returns whether there was a next step. */
  next(): boolean {
    const at = this.at === null ? 0 : this.at + 1;
    if (at >= this.steps.length) return false;
    this.go(at);
    return true;
  }

  /** Goes back, and returns whether there was a step before. */
  back(): boolean {
    if (!this.at) return false;
    this.go(this.at - 1);
    return true;
  }

  close(): void {
    this.at = null;
  }
}
