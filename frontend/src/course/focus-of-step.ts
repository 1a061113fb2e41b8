const MARGIN = 12; // px of room around what is brought into sight

/** The element, or the part of the lesson that has it: a frame around a table that scrolls would be cut off. */
function find(testid: string): HTMLElement | null {
  let found = document.querySelector<HTMLElement>(`main [data-testid="${CSS.escape(testid)}"]`);
  const part = found?.closest<HTMLElement>('.part');
  while (found?.parentElement && getComputedStyle(found.parentElement).overflowX !== 'visible') found = found.parentElement;
  return part ?? found;
}

/** Frames what a caption speaks of, and nothing else. */
export function mark(testid: string | undefined): void {
  for (const node of document.querySelectorAll('[data-looked]')) node.removeAttribute('data-looked');
  if (testid) find(testid)?.setAttribute('data-looked', '');
}

/** Scrolls so that the element lies above the bar at the bottom; the top of it, if it is higher than the window. */
export function bringIntoSight(testid: string, barHeight: number): void {
  const box = find(testid)?.getBoundingClientRect();
  if (!box) return;
  const room = innerHeight - barHeight;
  const isInSight = box.top >= 0 && box.bottom + MARGIN <= room;
  if (isInSight) return;
  const top = box.height + 2 * MARGIN > room ? box.top - MARGIN : box.top - (room - box.height) / 2;
  scrollBy({ top, behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
}
