import { visible } from './heads';
import { fitted, prepareCanvas, drawTexts, type CanvasText } from './canvas';

/** One axis of what is on the screen. */
export interface Axis {
  /** The cell at the edge, with fractions, and pixels a cell. */
  start: number;
  size: number;
  count: number;
  texts: string[] | null;
  /** The cell that is looked at. */
  at: number;
  vertical: boolean;
}

const FITS = 11; // pixels that a line of text needs
const APART = 44; // pixels between two numbers

/** Names of tokens where they fit, else numbers here and there. */
export function drawGutter(canvas: HTMLCanvasElement, axis: Axis): void {
  const paper = prepareCanvas(canvas);
  const { context } = paper;
  const length = axis.vertical ? paper.height : paper.width;
  const room = (axis.vertical ? paper.width : paper.height) - 8;
  // A token of which less than half is seen has no name there.
  const first = Math.max(0, Math.round(axis.start));
  const last = Math.min(axis.count - 1, Math.round(axis.start + length / axis.size) - 1);
  const letters: CanvasText[] = [];
  const named = axis.size >= FITS;
  const step = named ? 1 : roundStep(APART / axis.size);
  const points = Math.min(13, named ? Math.max(10, axis.size * 0.8) : 11);
  for (let i = Math.ceil(first / step) * step; i <= last; i += step) {
    const hidden = !named && axis.at >= 0 && Math.abs(i - axis.at) * axis.size < points * 1.3;
    if (!hidden) write(i, named);
  }
  if (!named && axis.at >= first && axis.at <= last) write(axis.at, true);
  drawTexts(canvas, paper, letters);

  /** Among numbers the one that is looked at has both. */
  function nameOf(i: number, byName: boolean): string {
    if (!byName || !axis.texts) return String(i);
    return named ? visible(axis.texts[i]) : `${visible(axis.texts[i])} · ${i}`;
  }

  function write(i: number, byName: boolean): void {
    const whole = points / 2 + 1; // no letter is cut in half
    const at = Math.min(length - whole, Math.max(whole, (i + 0.5 - axis.start) * axis.size));
    const held = i === axis.at;
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

/** 1, 2, 5, 10, 20... above `least`. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least) ?? 10 * power;
}
