/** A dot in pixels, and the text beside it. */
export interface LabelledPoint {
  x: number;
  y: number;
  name: string;
}

export interface LabelPosition {
  x: number;
  y: number;
  anchor: 'start' | 'end' | 'middle';
}

type Box = [left: number, top: number, right: number, bottom: number];

const FAR = 11;
const HIGH = 15;

/**
 * Positions of the names: to the right of the dot, or wherever they overlap least. With the x of an origin, from which an
 * arrow leads to each dot, the side away from it comes first and the side of the arrow last.
 */
export function placeLabels(dots: LabelledPoint[], origin = -Infinity): LabelPosition[] {
  const taken: Box[] = dots.map(({ x, y }) => [x - 7, y - 7, x + 7, y + 7]);
  return dots.map((dot) => {
    const ways = dot.name ? around(dot, origin) : [around(dot, origin)[0]];
    const covered = ways.map((way) => taken.reduce((sum, box) => sum + shared(boxOf(way, dot.name), box), 0));
    const best = ways[covered.indexOf(Math.min(...covered))];
    if (dot.name) taken.push(boxOf(best, dot.name));
    return best;
  });
}

function around({ x, y }: LabelledPoint, origin: number): LabelPosition[] {
  const right: LabelPosition = { x: x + FAR, y, anchor: 'start' };
  const left: LabelPosition = { x: x - FAR, y, anchor: 'end' };
  const above: LabelPosition = { x, y: y - FAR - HIGH / 2, anchor: 'middle' };
  const below: LabelPosition = { x, y: y + FAR + HIGH / 2, anchor: 'middle' };
  if (!Number.isFinite(origin)) return [right, left, above, below];
  return x < origin ? [left, above, below, right] : [right, above, below, left];
}

function boxOf({ x, y, anchor }: LabelPosition, name: string): Box {
  const width = [...name].reduce((sum, letter) => sum + (letter > '\u2e80' ? 13 : 7.5), 0);
  const left = x - { start: 0, middle: width / 2, end: width }[anchor];
  return [left, y - HIGH / 2, left + width, y + HIGH / 2];
}

function shared(a: Box, b: Box): number {
  const width = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
  const height = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  return width > 0 && height > 0 ? width * height : 0;
}
