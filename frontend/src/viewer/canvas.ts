/** A canvas with as many pixels as the screen has, and the colours that its style sheet gives it. */
export interface CanvasStyle {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  ink: string;
  accent: string;
  faint: string;
  font: string;
}

/** color, caret-color and text-decoration-color are the ink, the accent and the faint colour of a drawing. */
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

/** As much of a text as has room, in a few steps: `measureText` is not free. */
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

/** A text on a canvas, which stays a text in a drawing. */
export interface CanvasText {
  text: string;
  x: number;
  y: number;
  size: number;
  weight: string;
  colour: string;
  align: 'start' | 'center' | 'end';
  /** Read from below. */
  turned: boolean;
}

const letters = new WeakMap<HTMLCanvasElement, CanvasText[]>();

/** Of a canvas that has nothing but texts. */
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
