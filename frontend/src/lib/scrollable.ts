/** What is broader than its place scrolls, and then the keyboard must be able to stop there. */
export function scrollable(node: HTMLElement): () => void {
  const look = (): void => {
    if (node.scrollWidth > node.clientWidth + 1) node.tabIndex = 0;
    else node.removeAttribute('tabindex');
  };
  const watcher = new ResizeObserver(look);
  watcher.observe(node);
  for (const child of node.children) watcher.observe(child);
  // What is in it may change, and is broader once its letters have come.
  const changes = new MutationObserver(look);
  changes.observe(node, { childList: true, subtree: true, characterData: true });
  void document.fonts.ready.then(look);
  return () => {
    watcher.disconnect();
    changes.disconnect();
  };
}
