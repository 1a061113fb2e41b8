import { css, inkOn, table } from '$lib/colours';
import { fixed } from '$lib/numbers';
import type { Cell } from './cursor.svelte';
import type { Frame } from './deep-zoom';
import { coloursOf, position, type ColourScale } from './colour-scale';
import { prepareCanvas } from './canvas';
import type { TileStore } from './tile-store';
import type { Pool } from './source';

const READABLE = 42; // pixels per cell from which on numbers are written into the cells

/** Draws the overlay of a map: hatched empty rows and columns without a colour, numbers in large cells, the selected cell. */
export function drawOverlay(
  canvas: HTMLCanvasElement,
  frame: Frame,
  sheet: TileStore,
  ink: ColourScale,
  pool: Pool,
  cell: Cell | null,
  /** Number of keys at the left that have no colour. */
  hidden: number,
): void {
  const paper = prepareCanvas(canvas);
  const { context } = paper;
  const { n, m, empty } = sheet.info;
  const x = (column: number): number => (column - frame.left) * frame.size;
  const y = (row: number): number => (row - frame.top) * frame.size;
  const [left, right] = [Math.max(0, x(0)), Math.min(paper.width, Math.ceil(x(m)) + 1)]; // tiles end on whole pixels, so does the hatching
  context.fillStyle = hatch(context, paper.faint, ink.dark);
  for (const [start, stop] of empty) {
    const [low, high] = [Math.max(0, y(start)), Math.min(paper.height, y(stop))];
    if (high > low) context.fillRect(left, low, right - left, high - low);
  }
  const [from, to] = [Math.max(0, y(0)), Math.min(paper.height, y(n))];
  if (hidden && x(hidden) > 0) context.fillRect(left, from, Math.max(2, x(hidden) - left), to - from);
  if (frame.size >= READABLE) writeNumbers();
  if (cell) {
    const edge = Math.max(frame.size, 4);
    const [at, down] = [x(cell.column + 0.5) - edge / 2, y(cell.row + 0.5) - edge / 2];
    context.strokeStyle = '#000000';
    context.lineWidth = 4;
    context.strokeRect(at, down, edge, edge);
    context.strokeStyle = '#ffffff';
    context.lineWidth = 2;
    context.strokeRect(at, down, edge, edge);
  }

  function writeNumbers(): void {
    const colours = coloursOf(ink);
    context.font = `500 ${Math.min(14, frame.size / 3.4)}px ${paper.font}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const [firstRow, lastRow] = [Math.max(0, Math.floor(frame.top)), Math.min(n - 1, Math.floor(frame.top + paper.height / frame.size))];
    const [first, last] = [Math.max(hidden, Math.floor(frame.left)), Math.min(m - 1, Math.floor(frame.left + paper.width / frame.size))];
    for (let i = firstRow; i <= lastRow; i++) {
      for (let j = first; j <= last; j++) {
        const value = sheet.weight(i, j);
        if (value === undefined || isEmpty(i)) continue;
        context.fillStyle = inkOn(colours, Math.round(255 * position(value, sheet.topOfRow(pool, i), ink)));
        context.fillText(cellText(value, ink.signed), x(j + 0.5), y(i + 0.5));
      }
    }
  }

  function isEmpty(row: number): boolean {
    return empty.some(([start, stop]) => row >= start && row < stop);
  }
}

/** A weight in three digits, or a difference with its sign. */
export function cellText(value: number, signed: boolean): string {
  if (value === 0) return '0';
  if (Math.abs(value) < 0.0005) return signed ? '≈0' : '<.001';
  return `${signed && value > 0 ? '+' : ''}${fixed(value, 3).replace(/^(−?)0/, '$1')}`;
}

/** Hatch pattern on a transparent background. */
function hatch(context: CanvasRenderingContext2D, colour: string, dark: boolean): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const lines = tile.getContext('2d')!;
  lines.fillStyle = css(table('reds', dark), 0);
  lines.fillRect(0, 0, 8, 8);
  lines.strokeStyle = colour;
  lines.lineWidth = 1.5;
  for (const by of [-8, 0, 8]) {
    lines.beginPath();
    lines.moveTo(by, 8);
    lines.lineTo(by + 8, 0);
    lines.stroke();
  }
  return context.createPattern(tile, 'repeat') ?? colour;
}
