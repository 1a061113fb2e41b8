/** Svelte action: an element that overflows becomes focusable, so that the keyboard can scroll it. */
export function scrollable(node: HTMLElement): () => void {
  const look = (): void => {
    if (node.scrollWidth > node.clientWidth + 1) node.tabIndex = 0;
    else node.removeAttribute('tabindex');
  };
  const watcher = new ResizeObserver(look);
  watcher.observe(node);
  for (const child of node.children) watcher.observe(child);
  // The content may change, and becomes wider when its fonts have loaded.
  const changes = new MutationObserver(look);
  changes.observe(node, { childList: true, subtree: true, characterData: true });
  void document.fonts.ready.then(look);
  return () => {
    watcher.disconnect();
    changes.disconnect();
  };
}
