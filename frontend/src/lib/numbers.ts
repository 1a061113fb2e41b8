/** Formatted numbers. Elements keep the exact value in `data-value`. */
export type Maybe = number | null | undefined;

/** Fixed number of digits, with a typographic minus sign, no minus before zero, and a dash for a missing value. */
export function fixed(value: Maybe, digits = 2): string {
  if (value == null || !Number.isFinite(value)) return '–';
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** `digits` significant digits: 1230, 12.3, 0.0123, 1.23e−7. */
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
  const numbers: number[] = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k++) numbers.push(tidy(k * step));
  return numbers;
}

/** Removes floating-point noise: 0.30000000000000004 becomes 0.3. */
export function tidy(value: number): number {
  return Number(value.toPrecision(12)) + 0;
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
