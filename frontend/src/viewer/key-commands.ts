import { clamp } from '$lib/numbers';
import type { Cell } from './cursor.svelte';

/** Command of a key on a map. */
export type KeyCommand = { to: Cell } | { zoom: number } | 'all' | 'leave';

const STEPS: Record<string, [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};
const ZOOM = 1.6;

/** The command of a key press at the selected cell; Shift moves by `far` cells. */
export function keyCommand(event: KeyboardEvent, from: Cell, n: number, m: number, far: number): KeyCommand | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const to = (row: number, column: number): KeyCommand => ({
    to: { row: clamp(row, 0, n - 1), column: clamp(column, 0, m - 1) },
  });
  const by = STEPS[event.key];
  const length = event.shiftKey ? far : 1;
  if (by) return to(from.row + by[0] * length, from.column + by[1] * length);
  switch (event.key) {
    case 'Home':
      return to(from.row, 0);
    case 'End':
      return to(from.row, m - 1);
    case 'PageUp':
      return to(0, from.column);
    case 'PageDown':
      return to(n - 1, from.column);
    case '+':
    case '=':
      return { zoom: ZOOM };
    case '-':
      return { zoom: 1 / ZOOM };
    case '0':
      return 'all';
    case 'Enter':
      return to(from.row, from.column);
    case 'Escape':
      return 'leave';
    default:
      return null;
  }
}
