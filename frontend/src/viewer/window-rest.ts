const EDGE = 16; // pixels below the last element

/**
 * Sets `--rest` of an element: the height at which `last`, in or below it, ends at the lower edge of the window, if the
 * page (or what is full screen) is at its top. A style sheet decides what to do with it.
 */
export function followWindow(element: HTMLElement, last: HTMLElement = element): () => void {
  const measure = (): void => {
    const box = element.getBoundingClientRect();
    const below = Math.max(0, last.getBoundingClientRect().bottom - box.bottom);
    const full = document.fullscreenElement;
    const top = box.top + (full?.contains(element) ? full.scrollTop : scrollY);
    element.style.setProperty('--rest', `${Math.floor(innerHeight - top - below - EDGE)}px`);
  };
  let frame = 0;
  const soon = (): void => {
    cancelAnimationFrame(frame); // measuring at once would change sizes while the browser reports them
    frame = requestAnimationFrame(measure);
  };
  measure();
  const watcher = new ResizeObserver(soon);
  watcher.observe(document.body);
  watcher.observe(last);
  addEventListener('resize', soon);
  document.addEventListener('fullscreenchange', soon);
  return () => {
    cancelAnimationFrame(frame);
    watcher.disconnect();
    removeEventListener('resize', soon);
    document.removeEventListener('fullscreenchange', soon);
  };
}
