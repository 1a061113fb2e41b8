import { labelAt, pieceAt } from './heads';
import { fitted, prepareCanvas, drawTexts, type CanvasText } from './canvas';

/** One axis of the visible part of a map. */
export interface Axis {
  /** Fractional cell at the edge, and pixels per cell. */
  start: number;
  size: number;
  count: number;
  texts: string[] | null;
  /** The selected cell. */
  at: number;
  vertical: boolean;
}

const LINE_HEIGHT = 11; // pixels that a line of text needs
const NUMBER_DISTANCE = 44; // pixels between two numbers

/** Draws the axis labels: tokens where they fit, otherwise positions at round numbers. */
export function drawGutter(canvas: HTMLCanvasElement, axis: Axis): void {
  const paper = prepareCanvas(canvas);
  const { context } = paper;
  const length = axis.vertical ? paper.height : paper.width;
  const room = (axis.vertical ? paper.width : paper.height) - 8;
  // Tokens of which less than half is visible have no label.
  const first = Math.max(0, Math.round(axis.start));
  const last = Math.min(axis.count - 1, Math.round(axis.start + length / axis.size) - 1);
  const letters: CanvasText[] = [];
  const named = axis.size >= LINE_HEIGHT;
  const step = named ? 1 : roundStep(NUMBER_DISTANCE / axis.size);
  const points = Math.min(13, named ? Math.max(10, axis.size * 0.8) : 11);
  for (let i = Math.ceil(first / step) * step; i <= last; i += step) {
    const hidden = !named && axis.at >= 0 && Math.abs(i - axis.at) * axis.size < points * 1.3;
    if (!hidden && !isLaterPiece(i)) write(i, named);
  }
  if (!named && axis.at >= first && axis.at <= last) write(axis.at, true);
  drawTexts(canvas, paper, letters);

  /** Label of a cell; among numbers the selected cell also has its token. */
  function nameOf(i: number, byName: boolean): string {
    if (!byName || !axis.texts) return String(i);
    return named ? labelAt(axis.texts, i) : `${labelAt(axis.texts, i)} · ${i}`;
  }

  /** Pieces of one character have one label, beside the first of them that is visible. */
  function isLaterPiece(i: number): boolean {
    const piece = named && axis.texts ? pieceAt(axis.texts, i) : null;
    return piece !== null && piece.part > 1 && i > first;
  }

  /** Number of tokens from this one on that its label stands for. */
  function lengthOf(i: number, byName: boolean): number {
    const piece = named && byName && axis.texts ? pieceAt(axis.texts, i) : null;
    return piece ? Math.min(piece.count - piece.part + 1, last - i + 1) : 1;
  }

  function write(i: number, byName: boolean): void {
    const whole = points / 2 + 1; // so that no letter is cut off
    const count = lengthOf(i, byName);
    const at = Math.min(length - whole, Math.max(whole, (i + count / 2 - axis.start) * axis.size));
    const held = axis.at >= i && axis.at < i + count;
    const weight = held ? '620' : '400';
    context.font = `${weight} ${points}px ${paper.font}`;
    letters.push({
      text: fitted(context, nameOf(i, byName), room),
      x: axis.vertical ? paper.width - 6 : at,
      y: axis.vertical ? at : paper.height - 6,
      size: points,
      weight,
      colour: held ? paper.accent : paper.ink,
      align: axis.vertical ? 'end' : 'start',
      turned: !axis.vertical,
    });
  }
}

/** The smallest of 1, 2, 5, 10, 20, ... that is at least `least`. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least) ?? 10 * power;
}
