import { SvelteMap } from 'svelte/reactivity';
import { parsePlace, writePlace, type Place } from './address';

/** The part of the address behind `#`: the lesson or recording that is open, and its state. */
class CurrentRoute {
  now = $state.raw<Place>(parsePlace(location.hash));
  /** The last query of each path, which is restored when the user comes back. */
  #left = new SvelteMap<string, string>();
  /** The last known address; if the real one differs, the user has navigated and `hashchange` will follow. */
  #known = location.hash;

  constructor() {
    addEventListener('hashchange', () => {
      this.#known = location.hash;
      this.now = parsePlace(location.hash);
    });
  }

  /** Writes the state of the page to the address without a history entry. */
  write(path: string[], query: string): void {
    this.#left.set(path.join('/'), query);
    const hash = writePlace(path, query);
    if (hash === location.hash || location.hash !== this.#known) return;
    this.#known = hash;
    history.replaceState(history.state, '', `${location.pathname}${location.search}${hash}`);
  }

  /** The address of a path with its last query. */
  link(...path: string[]): string {
    return writePlace(path, this.#left.get(path.join('/')) ?? '');
  }
}

export const route = new CurrentRoute();
