/** The language of the page. It is part of the address, so a link opens in the language in which it was shared. */
export type Language = 'en' | 'zh';

export const LANGUAGES: Record<Language, string> = { en: 'English', zh: '中文' };

const HTML_LANG: Record<Language, string> = { en: 'en', zh: 'zh-Hans' };

class CurrentLanguage {
  now = $state<Language>(first());

  set(language: Language): void {
    this.now = language;
    const url = new URL(location.href);
    url.searchParams.set('lang', language);
    history.replaceState(history.state, '', url);
  }

  /** Selects the texts of the current language. */
  of<W>(words: Record<Language, W>): W {
    return words[this.now];
  }

  get html(): string {
    return HTML_LANG[this.now];
  }
}

function first(): Language {
  const asked = new URLSearchParams(location.search).get('lang') ?? navigator.language;
  return asked.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

export const language = new CurrentLanguage();
