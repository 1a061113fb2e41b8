import type { Entry, Measure, Metadata, Profile } from './source';

/** A head of the wall. */
export interface Head {
  entry: number;
  head: number;
  /** Index of the layer in the model and of the head in the layer, from 0 as in Python. */
  layer: number;
  number: number;
  /** Path of the module. */
  name: string;
  step: number;
}

export type Order = 'layer' | Measure;

export function headsOf(meta: Metadata, step: number): Head[] {
  const layers = layerNumbers(meta);
  return meta.entries
    .filter((entry) => entry.step === step)
    .flatMap((entry) =>
      Array.from({ length: entry.shape[1] }, (_, head) => ({
        entry: entry.entry,
        head,
        layer: layers.get(entry.layer)!,
        number: entry.heads?.[head] ?? head,
        name: entry.layer,
        step: entry.step,
      })),
    );
}

/** Layers in the order of their first call. */
export function layerNumbers(meta: Metadata): Map<string, number> {
  const found = new Map<string, number>();
  for (const { layer } of meta.entries) if (!found.has(layer)) found.set(layer, found.size);
  return found;
}

export function stepsOf(meta: Metadata): number[] {
  return [...new Set(meta.entries.map((entry) => entry.step))];
}

export const keyOf = ({ entry, head }: { entry: number; head: number }): string => `${entry}/${head}`;

/** Sorts heads by a measure, ascending or descending; heads without it come last. */
export function sorted(heads: Head[], profiles: Map<string, Profile>, order: Order, up: boolean): Head[] {
  const way = up ? 1 : -1;
  if (order === 'layer') return up ? heads : heads.toReversed();
  const of = (head: Head): number | null => profiles.get(keyOf(head))?.[order] ?? null;
  return heads.toSorted((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return way * (x - y);
  });
}

/**
 * Whether a head matches the filter: parts of its label or of its module's name, and bounds on measures such as
 * `sink>0.5`.
 */
export function matches(head: Head, profile: Profile | undefined, label: string, asked: string): boolean {
  const words = asked.toLowerCase().split(/[\s·]+/).filter(Boolean);
  const bounds = words.map((word) => /^([a-z]+)(<=?|>=?)([\d.e-]*)$/.exec(word));
  const phrase = words.filter((_, at) => !bounds[at]).join(' ');
  const inLabel = ` ${label.toLowerCase().split(/[\s·]+/).join(' ')} `.includes(` ${phrase}${/\d$/.test(phrase) ? ' ' : ''}`);
  if (phrase && !inLabel && !head.name.toLowerCase().includes(phrase)) return false;
  return bounds.every((bound) => !bound || within(profile?.[bound[1] as Measure] ?? null, bound[2], bound[3]));
}

function within(value: number | null, sign: string, written: string): boolean {
  const bound = written === '' ? NaN : Number(written);
  if (value === null || Number.isNaN(bound)) return false;
  if (sign === '<') return value < bound;
  if (sign === '<=') return value <= bound;
  return sign === '>' ? value > bound : value >= bound;
}

/** Tokens of the queries and of the keys; null if there are none. */
export interface Tokens {
  queries: string[] | null;
  keys: string[] | null;
}

export function tokensOf(meta: Metadata, entry: Entry, batch: number): Tokens {
  const texts = meta.tokens[String(entry.step)] ?? {};
  const of = (name: string | null, count: number): string[] | null => {
    const row = name === null ? undefined : texts[name]?.[batch];
    return row?.length === count ? row : null;
  };
  return { queries: of(entry.queries, entry.shape[2]), keys: of(entry.keys, entry.shape[3]) };
}

/** One of several tokens that make a character together: part 2 of 3 of 姚, say, counted from 1. */
export interface Piece {
  text: string;
  part: number;
  count: number;
}

/** Recordings write such a token as `姚 2/3`. Only a complete run counts, because a text may hold `1/2` by itself. */
export function pieceAt(texts: string[], at: number): Piece | null {
  const found = /^(.+) (\d)\/(\d)$/su.exec(texts[at] ?? '');
  if (!found) return null;
  const [text, part, count] = [found[1], Number(found[2]), Number(found[3])];
  const start = at - part + 1;
  if (part < 1 || part > count || count < 2 || start < 0) return null;
  for (let i = 0; i < count; i++) if (texts[start + i] !== `${text} ${i + 1}/${count}`) return null;
  return { text, part, count };
}

/** Label of a token: its text, or the character of which it is a piece. */
export function labelAt(texts: string[], at: number): string {
  return visible(pieceAt(texts, at)?.text ?? texts[at] ?? '');
}

/** Label of a token among its neighbours: a character is written at its first piece, and a dot at the others. */
export function labelInLine(texts: string[], at: number): string {
  return (pieceAt(texts, at)?.part ?? 1) > 1 ? '·' : labelAt(texts, at);
}

/** A token with visible signs for spaces and line breaks. */
export function visible(text: string): string {
  return text.replaceAll('\n', '⏎').replaceAll('\t', '⇥').replace(/^ | $/g, '␣') || '∅';
}
