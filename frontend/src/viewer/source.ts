/**
 * What the viewer asks, whoever answers: a server (`http.ts`) or a notebook's kernel (`messages.ts`).
 *
 * Weights come as numbers; nothing in here computes one.
 */
export type Pool = 'mean' | 'max';

/** One head of one sequence of one call. */
export interface HeadKey {
  id: string;
  entry: number;
  batch: number;
  head: number;
}

/** A line of the list of recordings. */
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
  /** Which of the layer's heads were kept; null: all. */
  heads: number[] | null;
  bytes: number;
  /** Which texts of the step its queries and keys stand for. */
  queries: string | null;
  keys: string | null;
}

export interface Metadata extends Omit<RecordingSummary, 'tokens'> {
  entries: Entry[];
  /** step -> input -> one list of texts for each sequence */
  tokens: Record<string, Record<string, string[][]>>;
}

export const MEASURES = ['entropy', 'saturation', 'distance', 'sink', 'previous', 'self', 'separators'] as const;
export type Measure = (typeof MEASURES)[number];

export type Profile = { entry: number; head: number } & Record<Measure, number | null>;

export interface Profiles {
  progress: number;
  /** Null until all is known. */
  rows: Profile[] | null;
}

/** Numbers in bulk. */
export interface ArrayResult {
  values: Float32Array;
  shape: number[];
  /** False: an estimate from sampled rows. */
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
  /** [start, stop) of each run of rows that see nothing. */
  empty: [number, number][];
}

export interface Top {
  keys: number[];
  weights: number[];
}

/** How far a new recording is. */
export interface Progress {
  stage?: 'loading' | 'recording' | 'done';
  progress?: number;
  tokens?: number;
  id?: string;
  error?: string;
}

export interface Source {
  list(): Promise<Listing>;
  meta(id: string): Promise<Metadata>;
  profiles(id: string, signal?: AbortSignal): Promise<Profiles>;
  thumbs(id: string, entry: number, batch: number, side: number, signal?: AbortSignal): Promise<ArrayResult>;
  info(place: HeadKey, signal?: AbortSignal): Promise<Info>;
  tile(place: HeadKey, pool: Pool, level: number, row: number, column: number, signal?: AbortSignal): Promise<ArrayResult>;
  /** The largest pixel of each line of pixels of a row of tiles: what a row is divided by to make it comparable. */
  peaks(place: HeadKey, pool: Pool, level: number, row: number, signal?: AbortSignal): Promise<ArrayResult>;
  row(place: HeadKey, i: number, signal?: AbortSignal): Promise<ArrayResult>;
  column(place: HeadKey, j: number, signal?: AbortSignal): Promise<ArrayResult>;
  top(place: HeadKey, i: number, k: number, signal?: AbortSignal): Promise<Top>;
  /** Only where new recordings may be made. */
  record?(text: string, model: string, signal?: AbortSignal): AsyncGenerator<Progress>;
}
