/** Light, dark or system theme. It is stored in this browser, not in the address: a link should not change it. */
export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'regard-theme';

class CurrentTheme {
  chosen = $state<Theme>(remembered());
  #system = $state(false);

  constructor() {
    const query = matchMedia('(prefers-color-scheme: dark)');
    this.#system = query.matches;
    query.addEventListener('change', (event) => (this.#system = event.matches));
  }

  get dark(): boolean {
    return this.chosen === 'auto' ? this.#system : this.chosen === 'dark';
  }

  set(theme: Theme): void {
    this.chosen = theme;
    this.apply();
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Without storage the theme still changes, until the page is reloaded.
    }
  }

  apply(): void {
    document.documentElement.dataset.theme = this.chosen;
  }
}

function remembered(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === 'light' || found === 'dark' ? found : 'auto';
  } catch {
    return 'auto';
  }
}

export const theme = new CurrentTheme();
