/** What is broader than its place scrolls, and then the keyboard must be able to stop there. */
export function scrollable(node: HTMLElement): () => void {
  const look = (): void => {
    if (node.scrollWidth > node.clientWidth + 1) node.tabIndex = 0;
    else node.removeAttribute('tabindex');
  };
  const watcher = new ResizeObserver(look);
  watcher.observe(node);
  for (const child of node.children) watcher.observe(child);
  return () => watcher.disconnect();
}
