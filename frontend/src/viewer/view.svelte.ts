import { readFields, writeFields } from '$lib/address';
import type { MapName } from '$lib/colours';
import type { Order } from './heads';
import type { Pool } from './source';

/** The state of the viewer that a link holds. */
export interface Fields {
  /** The open head; without an entry the wall is shown. */
  entry: number;
  head: number;
  batch: number;
  step: number;
  show: 'map' | 'text';
  /** Centre of the visible part in cells, and pixels per cell; 0 fits the whole map. */
  x: number;
  y: number;
  zoom: number;
  /** The pinned cell: query, key. */
  cell: number[];
  /** The pinned token of the text view. */
  token: number;
  /** First query and first key of the lines; negative ones mean around the pinned token. */
  lines: number[];
  map: MapName;
  scale: 'linear' | 'log';
  gamma: number;
  rows: boolean;
  /** Whether the first token, which is often a sink, has a colour. */
  first: boolean;
  pool: Pool;
  /** The other head of a comparison: recording/entry/batch/head. */
  with: string;
  /** Whether a comparison is shown as one map of differences. */
  difference: boolean;
  wall: 'auto' | 'compact' | 'large';
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
  lines: [-1, -1],
  map: 'viridis',
  scale: 'linear',
  gamma: 0.5,
  rows: false,
  first: true,
  pool: 'mean',
  with: '',
  difference: false,
  wall: 'auto',
  sort: 'layer',
  up: true,
  find: '',
};

/** Storage of the view's state: the address of a page, or a trait of the widget in a notebook. */
export interface Keep {
  read(): string;
  write(query: string): void;
  /** Link to a state of the view, if there are addresses. */
  link(query: string): string | null;
}

const ADDRESS_PAUSE = 200; // milliseconds between two changes of the address: browsers refuse one at every frame

/** The state of the viewer, and its link. */
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

  /** Link to this view with some fields changed. */
  linkTo(fields: Partial<Fields>): string {
    return this.keep.link(writeFields({ ...($state.snapshot(this.now) as Fields), ...fields }, DEFAULTS)) ?? '#';
  }

  read(): void {
    Object.assign(this.now, sensible(readFields(this.keep.read(), DEFAULTS)));
  }

  /** Writes the state to its storage; to be run in an effect. */
  follow(): () => void {
    const query = this.query;
    this.#timer = setTimeout(() => this.keep.write(query), ADDRESS_PAUSE);
    return () => clearTimeout(this.#timer);
  }

  /** Changes some fields, such as the open head; the others stay. */
  open(fields: Partial<Fields>): void {
    Object.assign(this.now, fields);
  }
}

/** Replaces invalid fields by defaults, because an address may hold anything. */
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
    lines: fields.lines.length === 2 ? fields.lines.map(whole) : [-1, -1],
    show: oneOf(fields.show, ['map', 'text'] as const, 'map'),
    map: oneOf(fields.map, ['viridis', 'cividis', 'inferno', 'reds'] as const, 'viridis'),
    scale: oneOf(fields.scale, ['linear', 'log'] as const, 'linear'),
    pool: oneOf(fields.pool, ['mean', 'max'] as const, 'mean'),
    wall: oneOf(fields.wall, ['auto', 'compact', 'large'] as const, 'auto'),
    gamma: Math.min(3, Math.max(0.2, fields.gamma)),
  };
}
