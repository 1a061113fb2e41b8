/** Numbers as people read them. The full value stays in `data-value`. */
export type Maybe = number | null | undefined;

/** With a real minus sign, and no minus before zero; what is missing is a dash. */
export function fixed(value: Maybe, digits = 2): string {
  if (value == null || !Number.isFinite(value)) return '–';
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** As many digits as say something: 1234, 12.3, 0.0123, 1.2e−7. */
export function short(value: Maybe, digits = 3): string {
  if (value == null || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(digits - 1).replaceAll('-', '−');
  const text = Number(value.toPrecision(digits)).toString();
  return text.replace('-', '−');
}

export function percent(value: Maybe, digits = 0): string {
  return value == null ? '–' : `${fixed(value * 100, digits)}%`;
}

/** Evenly spaced round numbers from `from` to `to`, about `count` of them. */
export function ticks(from: number, to: number, count = 5): number[] {
  const span = to - from;
  if (!(span > 0)) return [from];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough * 0.999)!;
  const found: number[] = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k++) found.push(tidy(k * step));
  return found;
}

/** Without the dust of floating point: 0.30000000000000004 is 0.3. */
export function tidy(value: number): number {
  return Number(value.toPrecision(12)) + 0;
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
