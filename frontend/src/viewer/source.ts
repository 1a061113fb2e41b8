/**
 * Interface of the viewer's data source, which is a server (`http.ts`) or the kernel of a notebook (`messages.ts`).
 *
 * Weights are always computed by the source, never in the browser.
 */
export type Pool = 'mean' | 'max';

/** One head of one sequence of one call. */
export interface HeadKey {
  id: string;
  entry: number;
  batch: number;
  head: number;
}

/** An entry of the list of recordings. */
export interface RecordingSummary {
  id: string;
  name: string;
  model: string | null;
  tokens: number;
  layers: number;
  heads: number;
}

export interface Listing {
  lines: RecordingSummary[];
  /** Whether a text can be recorded. */
  records: boolean;
}

/** One call of one layer. */
export interface Entry {
  entry: number;
  layer: string;
  step: number;
  /** batch, heads, queries, keys */
  shape: [number, number, number, number];
  cross: boolean;
  mask: string;
  /** The recorded heads of the layer; null means all. */
  heads: number[] | null;
  bytes: number;
  /** Names of the inputs whose tokens its queries and keys are. */
  queries: string | null;
  keys: string | null;
}

/** A layer that ran but is not in the recording, and why. */
export interface MissingLayer {
  layer: string;
  reason: string;
}

export interface Metadata extends Omit<RecordingSummary, 'tokens'> {
  entries: Entry[];
  /** step -> input -> one list of tokens for each sequence */
  tokens: Record<string, Record<string, string[][]>>;
  missing: MissingLayer[];
}

export const MEASURES = ['entropy', 'saturation', 'distance', 'sink', 'previous', 'self', 'separators'] as const;
export type Measure = (typeof MEASURES)[number];

export type Profile = { entry: number; head: number } & Record<Measure, number | null>;

export interface Profiles {
  progress: number;
  /** Of the calls that are measured so far. */
  rows: Profile[];
}

/** An array of float32. */
export interface ArrayResult {
  values: Float32Array;
  shape: number[];
  /** False for an estimate from sampled rows. */
  exact: boolean;
}

export interface Info {
  n: number;
  m: number;
  tile: number;
  levels: number;
  exact: boolean;
  progress: number;
  max: number | null;
  /** [start, stop) of each run of empty rows. */
  empty: [number, number][];
}

export interface Top {
  keys: number[];
  weights: number[];
}

/** Progress of a new recording. */
export interface Progress {
  stage?: 'loading' | 'recording' | 'done';
  progress?: number;
  tokens?: number;
  id?: string;
  error?: string;
  /** Name of the library's exception behind an error. */
  kind?: string;
}

export interface Source {
  list(): Promise<Listing>;
  meta(id: string): Promise<Metadata>;
  profiles(id: string, signal?: AbortSignal): Promise<Profiles>;
  thumbs(id: string, entry: number, batch: number, side: number, signal?: AbortSignal): Promise<ArrayResult>;
  info(place: HeadKey, signal?: AbortSignal): Promise<Info>;
  tile(place: HeadKey, pool: Pool, level: number, row: number, column: number, signal?: AbortSignal): Promise<ArrayResult>;
  /**
   * Largest pixel of each pixel row of a row of tiles, by which rows are divided to make them comparable; the first
   * `skip` pixels of a row, 0 or 1, are left out.
   */
  peaks(place: HeadKey, pool: Pool, level: number, row: number, skip: number, signal?: AbortSignal): Promise<ArrayResult>;
  row(place: HeadKey, i: number, signal?: AbortSignal): Promise<ArrayResult>;
  column(place: HeadKey, j: number, signal?: AbortSignal): Promise<ArrayResult>;
  top(place: HeadKey, i: number, k: number, signal?: AbortSignal): Promise<Top>;
  /** Present only if new recordings can be made. */
  record?(text: string, model: string, signal?: AbortSignal): AsyncGenerator<Progress>;
}
