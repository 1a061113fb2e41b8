/** A canvas at the resolution of the screen, with the colours of its style sheet. */
export interface CanvasStyle {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  ink: string;
  accent: string;
  faint: string;
  font: string;
}

/** Reads the colours of a drawing from CSS: color, caret-color (accent) and text-decoration-color (faint). */
export function prepareCanvas(canvas: HTMLCanvasElement): CanvasStyle {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const style = getComputedStyle(canvas);
  return {
    context,
    width,
    height,
    ink: style.color,
    accent: style.caretColor,
    faint: style.textDecorationColor,
    font: style.fontFamily,
  };
}

/** Shortens a text to the available width, by bisection because `measureText` is slow. */
export function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const letters = [...text];
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${letters.slice(0, middle).join('')}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join('')}…`;
}

/** A text on a canvas, which is exported to SVG as a text. */
export interface CanvasText {
  text: string;
  x: number;
  y: number;
  size: number;
  weight: string;
  colour: string;
  align: 'start' | 'center' | 'end';
  /** Whether it is rotated, to be read from bottom to top. */
  turned: boolean;
}

const letters = new WeakMap<HTMLCanvasElement, CanvasText[]>();

/** Draws the texts of a canvas that has nothing else. */
export const textsOf = (canvas: HTMLCanvasElement): CanvasText[] | undefined => letters.get(canvas);

export function drawTexts(canvas: HTMLCanvasElement, paper: CanvasStyle, all: CanvasText[]): void {
  letters.set(canvas, all);
  const { context } = paper;
  context.textBaseline = 'middle';
  for (const { text, x, y, size, weight, colour, align, turned } of all) {
    context.save();
    context.font = `${weight} ${size}px ${paper.font}`;
    context.textAlign = align;
    context.fillStyle = colour;
    context.translate(x, y);
    if (turned) context.rotate(-Math.PI / 2);
    context.fillText(text, 0, 0.5);
    context.restore();
  }
}
