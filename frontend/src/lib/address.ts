/**
 * A lesson's state in the address: `#/regression?w=2&kernel=gaussian`.
 *
 * Fields that equal the default are left out. The type of the default decides the encoding: numbers and words as they
 * are, lists of numbers as `1,2;3,4`, anything else as JSON.
 */
export type Fields = Record<string, unknown>;

export interface Place {
  /** The parts of the path: `['regression']`, `['view', 'run']`. */
  path: string[];
  query: string;
}

export function parsePlace(hash: string): Place {
  const [path, ...query] = hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decode), query: query.join('?') };
}

export function writePlace(path: string[], query: string): string {
  return `#/${path.map(encode).join('/')}${query ? `?${query}` : ''}`;
}

export function writeFields<F extends object>(fields: F, defaults: F): string {
  return Object.entries(fields)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name as keyof F]))
    .map(([name, value]) => `${encode(name)}=${encode(write(value, defaults[name as keyof F]))}`)
    .join('&');
}

/** The defaults, overridden by the fields of `query`; unknown or malformed fields are ignored. */
export function readFields<F extends object>(query: string, defaults: F): F {
  const found: Fields = structuredClone(defaults) as Fields;
  for (const pair of query.split('&')) {
    const at = pair.indexOf('=');
    const name = decode(pair.slice(0, at));
    if (at < 1 || !Object.hasOwn(defaults, name)) continue;
    const value = read(decode(pair.slice(at + 1)), (defaults as Fields)[name]);
    if (value !== undefined) found[name] = value;
  }
  return found as F;
}

function write(value: unknown, like: unknown): string {
  if (isNumbers(like) && isNumbers(value)) return value.join(',');
  if (isRows(like) && isRows(value)) return value.map((row) => row.join(',')).join(';');
  if (typeof like === 'object' || typeof value === 'object') return JSON.stringify(value);
  return String(value);
}

function read(text: string, like: unknown): unknown {
  if (typeof like === 'string') return text;
  if (typeof like === 'number') return number(text);
  if (typeof like === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined;
  if (isNumbers(like)) return numbers(text);
  if (isRows(like)) {
    const rows = text.split(';').map(numbers);
    return rows.includes(undefined) ? undefined : rows;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function number(text: string): number | undefined {
  const value = Number(text);
  return text.trim() !== '' && Number.isFinite(value) ? value : undefined;
}

function numbers(text: string): number[] | undefined {
  const found = text.split(',').map(number);
  return found.every((value) => value !== undefined) ? found : undefined;
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'number');
}

function isRows(value: unknown): value is number[][] {
  return Array.isArray(value) && value.length > 0 && value.every(isNumbers);
}

/** `encodeURIComponent`, except for characters that are safe after `#`: they stay readable. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|3B|3A|5B|5D|20)/g, (code) => PLAIN[code]);
}

const PLAIN: Record<string, string> = { '%2C': ',', '%3B': ';', '%3A': ':', '%5B': '[', '%5D': ']', '%20': '+' };

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
