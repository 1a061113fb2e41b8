import { fixed, percent } from '$lib/numbers';
import type { Measure } from './source';

/** A measure of a head as the wall writes it: nats and tokens as numbers, shares in percent. */
export function shownMeasure(name: Measure, value: number | null): string {
  if (name === 'entropy' || name === 'saturation') return fixed(value, 2);
  return name === 'distance' ? fixed(value, (value ?? 0) < 100 ? 1 : 0) : percent(value);
}
