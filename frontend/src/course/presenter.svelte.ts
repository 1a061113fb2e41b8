import { tick } from 'svelte';
import { route } from '$lib/route.svelte';
import { course } from './course.svelte';
import type { Guide } from './guide.svelte';

/** Text fields, where a letter is a letter. */
const WRITES = 'textarea, select, [contenteditable], input:not([type=range], [type=checkbox], [type=radio], [type=button])';

/** Presenter mode: full screen, large type, and the keys of a clicker walk through guided steps and lessons. */
class Presenter {
  on = $state(false);
  /** The guide of the open lesson; null while it is loading and where there is no lesson. */
  guide = $state.raw<Guide | null>(null);
  /** The open lesson; empty on the start page, null elsewhere. */
  place: string | null = null;
  /** The step to show when the next lesson has been loaded. */
  #arrival: 'first' | 'last' | null = null;

  toggle(): void {
    if (this.on) this.stop();
    else this.start();
  }

  start(): void {
    this.on = true;
    // A browser may refuse; the mode is then shown in the window.
    document.documentElement.requestFullscreen?.().catch(() => undefined);
  }

  stop(): void {
    this.on = false;
    if (document.fullscreenElement) void document.exitFullscreen().catch(() => undefined);
  }

  /** A lesson has been loaded. */
  arrive(guide: Guide): void {
    this.guide = guide;
    if (this.#arrival && guide.steps.length) guide.go(this.#arrival === 'first' ? 0 : guide.steps.length - 1);
    this.#arrival = null;
  }

  leave(guide: Guide): void {
    if (this.guide === guide) this.guide = null;
  }

  forward(): void {
    if (!this.#isLoading && !this.guide?.next()) this.#move(1);
  }

  back(): void {
    if (!this.#isLoading && !this.guide?.back()) this.#move(-1);
  }

  /** To be run in an effect: listens to the keys of the whole page before any control does. */
  listen(): () => void {
    const key = (event: KeyboardEvent) => this.#key(event);
    const screen = () => {
      if (!document.fullscreenElement) this.on = false; // by Escape, which the browser keeps to itself
    };
    addEventListener('keydown', key, true);
    document.addEventListener('fullscreenchange', screen);
    return () => {
      removeEventListener('keydown', key, true);
      document.removeEventListener('fullscreenchange', screen);
    };
  }

  get #isLoading(): boolean {
    return !!this.place && !this.guide;
  }

  #move(by: 1 | -1): void {
    if (this.place === null) return;
    const places = ['', ...course.names];
    const next = places[places.indexOf(this.place) + by];
    if (next === undefined) return;
    this.#arrival = by > 0 ? 'first' : 'last';
    this.guide = null;
    this.place = next;
    location.hash = next ? route.link(next) : route.link();
    // The focus does not stay on a control that is gone, or arrows would no longer walk.
    void tick().then(() => (document.activeElement as HTMLElement | null)?.blur());
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const action = this.#action(event);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  #action({ key, target, repeat }: KeyboardEvent): (() => void) | null {
    const control = target instanceof Element && target.closest('body, main') !== target ? target : null;
    if (key.toLowerCase() === 'p' && !repeat && !control?.closest(WRITES)) return () => this.toggle();
    if (!this.on) return null;
    if (key === 'PageDown' || (key === 'ArrowRight' && !control)) return () => this.forward();
    if (key === 'PageUp' || (key === 'ArrowLeft' && !control)) return () => this.back();
    return key === 'Escape' ? () => this.stop() : null;
  }
}

export const presenter = new Presenter();
