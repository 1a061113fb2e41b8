import { readFields, writeFields } from '$lib/address';
import type { MapName } from '$lib/colours';
import type { Order } from './heads';
import type { Pool } from './source';

/** Everything that a link to the viewer carries. */
export interface Fields {
  /** The head; without an entry the wall is shown. */
  entry: number;
  head: number;
  batch: number;
  step: number;
  show: 'map' | 'text';
  /** The middle of the map on the screen, in cells, and pixels a cell; 0: all of it. */
  x: number;
  y: number;
  zoom: number;
  /** The cell that is held: query, key. */
  cell: number[];
  /** The token of the text view that is held. */
  token: number;
  map: MapName;
  scale: 'linear' | 'log';
  gamma: number;
  rows: boolean;
  pool: Pool;
  /** What it is compared with: recording/entry/batch/head. */
  with: string;
  sort: Order;
  up: boolean;
  find: string;
}

export const DEFAULTS: Fields = {
  entry: -1,
  head: 0,
  batch: 0,
  step: -1,
  show: 'map',
  x: 0,
  y: 0,
  zoom: 0,
  cell: [-1, -1],
  token: -1,
  map: 'viridis',
  scale: 'linear',
  gamma: 0.5,
  rows: false,
  pool: 'mean',
  with: '',
  sort: 'layer',
  up: true,
  find: '',
};

/** Where the state of a view is kept: the address of a page, or nowhere in a notebook. */
export interface Keep {
  read(): string;
  write(query: string): void;
  /** An address of this view, if it has one. */
  link(query: string): string | null;
}

const REST = 200; // browsers refuse an address that changes at every frame

/** What is looked at, and how. */
export class View {
  now: Fields = $state({ ...DEFAULTS });
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly keep: Keep) {
    this.read();
  }

  get query(): string {
    return writeFields($state.snapshot(this.now) as Fields, DEFAULTS);
  }

  get link(): string | null {
    return this.keep.link(this.query);
  }

  /** The address of this view with other fields. */
  linkTo(fields: Partial<Fields>): string {
    return this.keep.link(writeFields({ ...($state.snapshot(this.now) as Fields), ...fields }, DEFAULTS)) ?? '#';
  }

  read(): void {
    Object.assign(this.now, sensible(readFields(this.keep.read(), DEFAULTS)));
  }

  /** Run in an effect. */
  follow(): () => void {
    const query = this.query;
    this.#timer = setTimeout(() => this.keep.write(query), REST);
    return () => clearTimeout(this.#timer);
  }

  /** Another head: what is held belongs to the one before. */
  open(fields: Partial<Fields>): void {
    Object.assign(this.now, fields);
  }
}

/** An address may say anything. */
function sensible(fields: Fields): Fields {
  const oneOf = <T>(value: T, among: readonly T[], other: T): T => (among.includes(value) ? value : other);
  const whole = (value: number): number => Math.max(-1, Math.round(value));
  return {
    ...fields,
    entry: whole(fields.entry),
    head: Math.max(0, whole(fields.head)),
    batch: Math.max(0, whole(fields.batch)),
    token: whole(fields.token),
    cell: fields.cell.length === 2 ? fields.cell.map(whole) : [-1, -1],
    show: oneOf(fields.show, ['map', 'text'] as const, 'map'),
    map: oneOf(fields.map, ['viridis', 'cividis', 'inferno', 'reds'] as const, 'viridis'),
    scale: oneOf(fields.scale, ['linear', 'log'] as const, 'linear'),
    pool: oneOf(fields.pool, ['mean', 'max'] as const, 'mean'),
    gamma: Math.min(3, Math.max(0.2, fields.gamma)),
  };
}
