import type { Language } from '$lib/language.svelte';
import { route } from '$lib/route.svelte';
import { findTerms } from './term-search';

/** Paragraphs in which terms become links: running text, and nothing that changes while a control is dragged. */
const PARAGRAPHS =
  'article p:not(.finding, .label, .asked, [role], [data-testid], [aria-hidden], [lang], :is(a, button, summary, label, [role=alert], [aria-hidden]) *)';

/**
 * Svelte attachment: the first occurrence of each term of the glossary in a lesson becomes a link.
 *
 * Only paragraphs that hold nothing but a text are changed. Svelte writes a changed text to the text node that it made;
 * this node is kept outside of the page and watched, and the paragraph is filled from it again.
 */
export function termLinks(language: () => Language): (root: HTMLElement) => () => void {
  return (root) => {
    const sources = new Map<Element, Text>();
    const filled = new WeakMap<Element, string>();
    let frame = 0;
    const later = () => (frame ||= requestAnimationFrame(fill));
    const watcher = new MutationObserver(later);
    const texts = new MutationObserver(later);

    function fill(): void {
      frame = 0;
      const known = new Set<string>();
      for (const paragraph of root.querySelectorAll(PARAGRAPHS)) {
        const source = sourceOf(paragraph);
        if (source) write(paragraph, source.data, known);
      }
      for (const paragraph of sources.keys()) if (!paragraph.isConnected) sources.delete(paragraph);
      watcher.takeRecords(); // our own changes
    }

    /** The text node that Svelte writes to, if the paragraph holds a text and nothing else. */
    function sourceOf(paragraph: Element): Text | null {
      const first = paragraph.firstChild;
      if (paragraph.childNodes.length === 1 && first instanceof Text && sources.get(paragraph) !== first) {
        sources.set(paragraph, first);
        texts.observe(first, { characterData: true });
      }
      return sources.get(paragraph) ?? null;
    }

    function write(paragraph: Element, text: string, known: Set<string>): void {
      const pieces = findTerms(text, language(), known);
      const key = JSON.stringify([language(), text, pieces.map((piece) => piece.term?.id)]);
      if (filled.get(paragraph) === key) return;
      const isPlain = !pieces.some((piece) => piece.term);
      if (isPlain && !filled.has(paragraph)) return;
      filled.set(paragraph, key);
      const source = sources.get(paragraph)!;
      paragraph.replaceChildren(...(isPlain ? [source] : pieces.map(({ text, term }) => (term ? link(text, term.id) : text))));
    }

    watcher.observe(root, { childList: true, subtree: true, characterData: true });
    later();
    return () => {
      cancelAnimationFrame(frame);
      watcher.disconnect();
      texts.disconnect();
    };
  };
}

function link(text: string, id: string): HTMLAnchorElement {
  const found = document.createElement('a');
  found.className = 'term';
  found.href = route.link('glossary', id);
  found.textContent = text;
  found.dataset.term = id;
  return found;
}
