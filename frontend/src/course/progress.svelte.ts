/** What was opened and read of the course. It is stored in this browser; without storage it lasts until the page is reloaded. */
export interface Stored {
  opened: string[];
  read: string[];
  last: string | null;
}

const KEY = 'regard-progress';
const NONE: Stored = { opened: [], read: [], last: null };

class Progress {
  #now = $state.raw<Stored>(stored());

  get last(): string | null {
    return this.#now.last;
  }

  isOpened = (name: string): boolean => this.#now.opened.includes(name);
  isRead = (name: string): boolean => this.#now.read.includes(name);

  open(name: string): void {
    this.#set({ ...this.#now, opened: added(this.#now.opened, name), last: name });
  }

  finish(name: string): void {
    this.#set({ ...this.#now, read: added(this.#now.read, name) });
  }

  forget(): void {
    this.#set(NONE);
  }

  #set(now: Stored): void {
    this.#now = now;
    try {
      localStorage.setItem(KEY, JSON.stringify(now));
    } catch {
      // Storage is forbidden or full.
    }
  }
}

const added = (names: string[], name: string) => (names.includes(name) ? names : [...names, name]);

function stored(): Stored {
  try {
    return parseProgress(localStorage.getItem(KEY));
  } catch {
    return NONE;
  }
}

/** Reads what was stored; anything else than a progress counts as none. */
export function parseProgress(text: string | null): Stored {
  let found: unknown;
  try {
    found = JSON.parse(text ?? '');
  } catch {
    return NONE;
  }
  if (typeof found !== 'object' || found === null) return NONE;
  const { opened, read, last } = found as Record<string, unknown>;
  return { opened: words(opened), read: words(read), last: typeof last === 'string' ? last : null };
}

const words = (list: unknown): string[] =>
  Array.isArray(list) ? list.filter((item): item is string => typeof item === 'string') : [];

export const progress = new Progress();
