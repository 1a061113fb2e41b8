import { textsOf, type CanvasText } from './canvas';

/** The visible page as a list of primitives, from which a PNG or an SVG is made. */
export type Mark =
  | { kind: 'image'; x: number; y: number; width: number; height: number; canvas: HTMLCanvasElement }
  | { kind: 'box'; x: number; y: number; width: number; height: number; fill: string; stroke: string }
  | { kind: 'line'; d: string; matrix: number[]; stroke: string; width: number; opacity: number }
  | ({ kind: 'text' } & CanvasText);

export interface Snapshot {
  width: number;
  height: number;
  paper: string;
  marks: Mark[];
}

/** Collects all visible parts of an element, with positions relative to it. */
export function snapshot(root: HTMLElement): Snapshot {
  const frame = root.getBoundingClientRect();
  const marks: Mark[] = [];
  keyCommand(root);
  return { width: frame.width, height: frame.height, paper: backgroundOf(root), marks };

  function keyCommand(node: Element): void {
    const style = getComputedStyle(node);
    const box = node.getBoundingClientRect();
    if (style.visibility === 'hidden' || style.display === 'none' || node.matches('.hidden-text, [data-unexported]')) return;
    const [x, y] = [box.left - frame.left, box.top - frame.top];
    const fill = colourOf(style.backgroundColor);
    const stroke = style.borderTopStyle === 'none' || style.borderTopWidth === '0px' ? '' : colourOf(style.borderTopColor);
    if ((fill || stroke) && node !== root) marks.push({ kind: 'box', x, y, width: box.width, height: box.height, fill, stroke });
    if (node instanceof HTMLCanvasElement) return image(node, x, y, box);
    if (node instanceof SVGPathElement) return line(node, style);
    for (const child of node.childNodes) {
      if (child instanceof Element) keyCommand(child);
      else if (child.nodeType === Node.TEXT_NODE && child.textContent?.trim()) write(child as Text, style);
    }
  }

  function image(canvas: HTMLCanvasElement, x: number, y: number, { width, height }: DOMRect): void {
    if (!canvas.width || !canvas.height) return;
    const letters = textsOf(canvas);
    if (!letters) marks.push({ kind: 'image', x, y, width, height, canvas });
    for (const letter of letters ?? []) marks.push({ kind: 'text', ...letter, x: x + letter.x, y: y + letter.y });
  }

  function line(path: SVGPathElement, style: CSSStyleDeclaration): void {
    const { a, b, c, d, e, f } = path.getScreenCTM()!;
    marks.push({
      kind: 'line',
      d: path.getAttribute('d')!,
      matrix: [a, b, c, d, e - frame.left, f - frame.top],
      stroke: colourOf(style.stroke),
      width: parseFloat(style.strokeWidth),
      opacity: Number(style.opacity),
    });
  }

  /** Adds a text word by word, so that its line breaks are kept. */
  function write(text: Text, style: CSSStyleDeclaration): void {
    const range = document.createRange();
    const base = { colour: colourOf(style.color), size: parseFloat(style.fontSize), weight: style.fontWeight, turned: false };
    for (const word of text.data.matchAll(/\S+/g)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const at = range.getClientRects()[0];
      if (!at?.width) continue;
      const [x, y] = [at.left - frame.left, at.top - frame.top + at.height / 2];
      marks.push({ kind: 'text', text: word[0], x, y, align: 'start', ...base });
    }
  }
}

export function pictureOf({ width, height, paper, marks }: Snapshot, family: string): HTMLCanvasElement {
  const ratio = Math.min(Math.max(2, devicePixelRatio), 12_000 / Math.max(width, height));
  const edge = 16;
  const made = document.createElement('canvas');
  [made.width, made.height] = [(width + 2 * edge) * ratio, (height + 2 * edge) * ratio].map(Math.round);
  const context = made.getContext('2d')!;
  context.scale(ratio, ratio);
  context.fillStyle = paper;
  context.fillRect(0, 0, width + 2 * edge, height + 2 * edge);
  context.translate(edge, edge);
  context.imageSmoothingEnabled = false;
  context.textBaseline = 'middle';
  for (const mark of marks) {
    context.save();
    if (mark.kind === 'image') context.drawImage(mark.canvas, mark.x, mark.y, mark.width, mark.height);
    else if (mark.kind === 'box') {
      context.beginPath();
      context.roundRect(mark.x, mark.y, mark.width, mark.height, 4);
      if (mark.fill) fillWith(mark.fill, () => context.fill());
      context.strokeStyle = mark.stroke;
      if (mark.stroke) context.stroke();
    } else if (mark.kind === 'line') {
      context.globalAlpha = mark.opacity;
      context.strokeStyle = mark.stroke;
      context.lineWidth = mark.width;
      const path = new Path2D();
      path.addPath(new Path2D(mark.d), new DOMMatrix(mark.matrix));
      context.stroke(path);
    } else {
      context.font = `${mark.weight} ${mark.size}px ${family}`;
      context.textAlign = mark.align;
      context.translate(mark.x, mark.y);
      if (mark.turned) context.rotate(-Math.PI / 2);
      fillWith(mark.colour, () => context.fillText(mark.text, 0, 0));
    }
    context.restore();
  }
  return made;

  function fillWith(colour: string, fill: () => void): void {
    context.fillStyle = colour;
    fill();
  }
}

export function drawingOf({ width, height, paper, marks }: Snapshot, title: string, family: string): string {
  const edge = 16;
  const size = `${round(width + 2 * edge)} ${round(height + 2 * edge)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size}" font-family="${escaped(family)}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="100%" height="100%" fill="${paper}"/>`,
    `<g transform="translate(${edge} ${edge})" dominant-baseline="central">`,
    ...marks.map(drawn),
    '</g>',
    '</svg>',
  ].join('\n');
}

function drawn(mark: Mark): string {
  if (mark.kind === 'line') {
    const place = `transform="matrix(${mark.matrix.map(round).join(' ')})" vector-effect="non-scaling-stroke"`;
    return `<path d="${mark.d}" ${place} fill="none" stroke="${mark.stroke}" stroke-width="${mark.width}" opacity="${mark.opacity}"/>`;
  }
  const at = `x="${round(mark.x)}" y="${round(mark.y)}"`;
  if (mark.kind === 'text') {
    const turned = mark.turned ? `transform="translate(${round(mark.x)} ${round(mark.y)}) rotate(-90)"` : at;
    const anchor = mark.align === 'end' ? ' text-anchor="end"' : mark.align === 'center' ? ' text-anchor="middle"' : '';
    return `<text ${turned} font-size="${round(mark.size)}" font-weight="${mark.weight}" fill="${mark.colour}"${anchor}>${escaped(mark.text)}</text>`;
  }
  const box = `${at} width="${round(mark.width)}" height="${round(mark.height)}"`;
  if (mark.kind === 'box') return `<rect ${box} rx="4" fill="${mark.fill || 'none'}" stroke="${mark.stroke || 'none'}"/>`;
  return `<image ${box} preserveAspectRatio="none" style="image-rendering:pixelated" href="${mark.canvas.toDataURL()}"/>`;
}

const round = (value: number): number => Math.round(value * 100) / 100;

export function escaped(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '�');
}

/** Colour as `#rrggbbaa`, which every program reads; empty for a transparent one. */
function colourOf(colour: string): string {
  if (!colour || colour === 'rgba(0, 0, 0, 0)' || colour === 'none') return '';
  known ??= document.createElement('canvas').getContext('2d', { willReadFrequently: true })!;
  known.clearRect(0, 0, 1, 1);
  known.fillStyle = colour;
  known.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = known.getImageData(0, 0, 1, 1).data;
  return a ? `#${[r, g, b, a].map((part) => part.toString(16).padStart(2, '0')).join('')}` : '';
}

let known: CanvasRenderingContext2D | null = null;

function backgroundOf(node: HTMLElement): string {
  for (let at: HTMLElement | null = node; at; at = at.parentElement) {
    const colour = colourOf(getComputedStyle(at).backgroundColor);
    if (colour) return colour;
  }
  return '#ffffff';
}
