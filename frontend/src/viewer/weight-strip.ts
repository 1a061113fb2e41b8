import { prepareCanvas } from './canvas';

export interface WeightStrip {
  values: Float32Array | null;
  start: number;
  size: number;
  /** The selected cell. */
  at: number;
  vertical: boolean;
  /** Number of first values that are not drawn. */
  skip: number;
  /** Whether values are differences, which are drawn from the middle to both sides. */
  signed: boolean;
}

/** Draws a row or column of weights as a bar chart aligned with the map; the largest weight fills the strip. */
export function drawWeightStrip(canvas: HTMLCanvasElement, strip: WeightStrip): void {
  const paper = prepareCanvas(canvas);
  const { context } = paper;
  const { values, start, size, vertical, skip, signed } = strip;
  if (!values || values.length <= skip) return;
  const length = vertical ? paper.height : paper.width;
  const room = (vertical ? paper.width : paper.height) - 6;
  const top = Math.abs(greatest(values, skip, values.length)) || 1;
  const bar = (from: number, to: number, value: number): void => {
    const side = signed ? room / 2 : room;
    const tall = Math.max(value === 0 ? 0 : 0.5, (side * Math.abs(value)) / top);
    const start = !signed ? 0 : value < 0 ? side - tall : side;
    if (vertical) context.fillRect(start, from, tall, to - from);
    else context.fillRect(from, start, to - from, tall);
  };
  context.fillStyle = paper.ink;
  if (size >= 1) {
    const gap = size > 5 ? 1 : 0;
    const last = Math.min(values.length - 1, Math.floor(start + length / size));
    for (let i = Math.max(skip, Math.floor(start)); i <= last; i++) {
      context.fillStyle = i === strip.at ? paper.accent : paper.ink;
      bar((i - start) * size, (i + 1 - start) * size - gap, values[i]);
    }
  } else {
    // Of several cells in one pixel the one of the largest magnitude is drawn, so that no peak is lost.
    for (let x = 0; x < length; x++) {
      const low = Math.max(skip, Math.floor(start + x / size));
      const high = Math.min(values.length, Math.ceil(start + (x + 1) / size));
      if (low < high) bar(x, x + 1, greatest(values, low, high));
    }
    context.fillStyle = paper.accent;
    const at = (strip.at + 0.5 - start) * size;
    if (strip.at >= skip) bar(at - 1, at + 1, values[strip.at] ?? 0);
  }
}

function greatest(values: Float32Array, low: number, high: number): number {
  let top = 0;
  for (let i = low; i < high; i++) if (Math.abs(values[i]) > Math.abs(top)) top = values[i];
  return top;
}
