import { SvelteMap } from 'svelte/reactivity';
import { parsePlace, writePlace, type Place } from './address';

/** The part of the address behind `#`: the lesson or recording that is open, and its state. */
class CurrentRoute {
  now = $state.raw<Place>(parsePlace(location.hash));
  /** The last query of every path, so that coming back finds things as they were left. */
  #left = new SvelteMap<string, string>();
  /** The address as we know it; another one means that the reader has left and `hashchange` is on its way. */
  #known = location.hash;

  constructor() {
    addEventListener('hashchange', () => {
      this.#known = location.hash;
      this.now = parsePlace(location.hash);
    });
  }

  /** Say what the page shows now, without a step in the history. */
  write(path: string[], query: string): void {
    this.#left.set(path.join('/'), query);
    const hash = writePlace(path, query);
    if (hash === location.hash || location.hash !== this.#known) return;
    this.#known = hash;
    history.replaceState(history.state, '', `${location.pathname}${location.search}${hash}`);
  }

  /** The address of a path, as it was left. */
  link(...path: string[]): string {
    return writePlace(path, this.#left.get(path.join('/')) ?? '');
  }
}

export const route = new CurrentRoute();
