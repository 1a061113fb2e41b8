/**
 * Svelte action: an element that overflows becomes focusable, so that the keyboard can scroll it, and `data-more` says at
 * which side something is hidden, where app.css lets it fade out.
 */
export function scrollable(node: HTMLElement): () => void {
  const look = (): void => {
    const hidden = node.scrollWidth - node.clientWidth;
    if (hidden > 1) node.tabIndex = 0;
    else node.removeAttribute('tabindex');
    const sides = [node.scrollLeft > 1 && 'start', node.scrollLeft < hidden - 1 && 'end'].filter(Boolean).join(' ');
    if (sides) node.dataset.more = sides;
    else delete node.dataset.more;
  };
  const watcher = new ResizeObserver(look);
  watcher.observe(node);
  for (const child of node.children) watcher.observe(child);
  // The content may change, and becomes wider when its fonts have loaded.
  const changes = new MutationObserver(look);
  changes.observe(node, { childList: true, subtree: true, characterData: true });
  node.addEventListener('scroll', look, { passive: true });
  void document.fonts.ready.then(look);
  return () => {
    watcher.disconnect();
    changes.disconnect();
    node.removeEventListener('scroll', look);
  };
}
