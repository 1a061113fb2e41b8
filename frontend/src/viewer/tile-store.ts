import { largest, type TilePainter } from './colour-scale';
import type { MapSource } from './difference';
import type { ArrayResult, Info, HeadKey, Pool } from './source';
import type { ColourLimits } from './colour-limits';

/** Number of cached tiles, 256 kB each: more than OpenSeadragon caches, so that no tile is requested twice. */
const MOST = 480;

export interface TileName {
  pool: Pool;
  level: number;
  row: number;
  column: number;
}

export const nameOf = ({ pool, level, row, column }: TileName): string => `${pool}/${level}/${row}/${column}`;

interface Tile extends TileName {
  block: ArrayResult;
}

/** The loaded tiles of one map, and their colours. */
export class TileStore {
  /** Called when the tiles have to be redrawn. */
  changed: () => void = () => {};
  #version = 0;
  readonly #tiles = new Map<string, Tile>();
  /** The largest value of each tile by the number of columns that are left out: `look` asks at every frame. */
  readonly #tops = new WeakMap<Float32Array, Record<number, number>>();
  /** Names of the tiles that were drawn last. */
  #visible: string[] = [];
  readonly #peaks = new Map<string, Promise<ArrayResult> | ArrayResult>();
  /** Version of the colours of each canvas. */
  readonly #painted = new WeakMap<CanvasRenderingContext2D, string>();

  constructor(
    readonly source: MapSource,
    readonly place: HeadKey,
    public info: Info,
    readonly tops: ColourLimits,
    private brush: TilePainter,
  ) {
    tops.join(this, () => this.changed());
  }

  close(): void {
    this.changed = () => {};
    this.tops.leave(this);
  }

  /** Updates the colour limit from the visible tiles. */
  look(names: Iterable<string>): void {
    this.#visible = [...names];
    const tiles = this.#visible.map((name) => this.#tiles.get(name)).filter((tile) => tile !== undefined);
    const top = Math.max(0, ...tiles.map((tile) => this.#topOf(tile)));
    if (top > 0) this.tops.see(this, top);
  }

  /** Changes the colours without a request for data. */
  set colours(brush: TilePainter) {
    const other = brush.ink.skip !== this.brush.ink.skip;
    this.brush = brush;
    if (other) {
      this.tops.reset();
      this.look(this.#visible);
    }
    this.#renewed();
  }

  /** Loads a tile and returns it as a canvas. */
  async canvas(name: TileName, signal?: AbortSignal): Promise<CanvasRenderingContext2D> {
    const tile = await this.#tile(name, signal);
    const { block } = tile;
    if (!this.tops.now) this.tops.see(this, this.#topOf(tile));
    if (this.brush.ink.rows) await this.#peaksOf(name);
    const canvas = document.createElement('canvas');
    [canvas.height, canvas.width] = block.shape;
    const context = canvas.getContext('2d')!;
    this.refresh(nameOf(name), context);
    return context;
  }

  /** Repaints a canvas if its colours are outdated. Called only for tiles that are about to be drawn. */
  refresh(key: string, context: CanvasRenderingContext2D): void {
    const version = `${this.#version}/${this.tops.version}`;
    const tile = this.#tiles.get(key);
    if (!tile || this.#painted.get(context) === version) return;
    const tops = this.#topsOf(tile);
    if (tops === null) return;
    const { values, shape } = tile.block;
    context.putImageData(this.brush.image(values, shape[1], tops, this.#skipOf(tile)), 0, 0);
    this.#painted.set(context, version);
  }

  async block(name: TileName, signal?: AbortSignal): Promise<ArrayResult> {
    return (await this.#tile(name, signal)).block;
  }

  /** Weight of a cell, if its tile is loaded. */
  weight(row: number, column: number): number | undefined {
    const { tile: side } = this.info;
    for (const pool of ['mean', 'max'] as const) {
      const at = { pool, level: 0, row: Math.floor(row / side), column: Math.floor(column / side) };
      const tile = this.#tiles.get(nameOf(at));
      if (tile) return tile.block.values[(row % side) * tile.block.shape[1] + (column % side)];
    }
    return undefined;
  }

  /** Value with the strongest colour in a row of cells. */
  topOfRow(pool: Pool, row: number): number {
    if (!this.brush.ink.rows) return this.tops.now;
    const { tile: side } = this.info;
    const peaks = this.#peaks.get(`${pool}/0/${Math.floor(row / side)}/${this.brush.ink.skip}`);
    return peaks && 'values' in peaks ? peaks.values[row % side] : 0;
  }

  /** Whether any of these tiles is an estimate. */
  estimated(names: Iterable<string>): boolean {
    for (const name of names) if (this.#tiles.get(name)?.block.exact === false) return true;
    return false;
  }

  /** Whether any loaded tile is an estimate. */
  get rough(): boolean {
    return this.estimated(this.#tiles.keys());
  }

  /** Requests all estimated tiles again. */
  async renew(): Promise<void> {
    const old = [...this.#tiles.values()].filter((tile) => !tile.block.exact);
    for (const [key, peaks] of this.#peaks) if ('values' in peaks && !peaks.exact) this.#peaks.delete(key);
    await Promise.all(
      old.map(async (tile) => {
        try {
          tile.block = await this.#ask(tile);
        } catch {
          // The estimate stays and is requested again later.
        }
      }),
    );
    if (old.length) this.#renewed();
  }

  #renewed(): void {
    this.#version++;
    this.changed();
  }

  async #tile(name: TileName, signal?: AbortSignal): Promise<Tile> {
    const key = nameOf(name);
    const kept = this.#tiles.get(key);
    if (kept) {
      this.#tiles.delete(key); // inserted again below, as the most recently used
      this.#tiles.set(key, kept);
      return kept;
    }
    const block = await this.#ask(name, signal);
    const tile: Tile = { ...name, block };
    this.#tiles.set(key, tile);
    for (const old of this.#tiles.keys()) {
      if (this.#tiles.size <= MOST) break;
      this.#tiles.delete(old);
    }
    return tile;
  }

  #ask({ pool, level, row, column }: TileName, signal?: AbortSignal): Promise<ArrayResult> {
    return this.source.tile(this.place, pool, level, row, column, signal);
  }

  /** Number of pixel columns of a tile that have no colour; a map of one column keeps it. */
  #skipOf({ column, block }: Tile): number {
    return column === 0 && block.shape[1] > 1 ? this.brush.ink.skip : 0;
  }

  /** The largest value of a tile that has a colour. */
  #topOf(tile: Tile): number {
    const { values, shape } = tile.block;
    const skip = this.#skipOf(tile);
    const known = this.#tops.get(values)?.[skip];
    if (known !== undefined) return known;
    const top = largest(values, shape[1], skip);
    this.#tops.set(values, { ...this.#tops.get(values), [skip]: top });
    return top;
  }

  /** Colour limits of the rows of a tile; null while they are loading, and the colours stay until then. */
  #topsOf(tile: Tile): number | Float32Array | null {
    if (!this.brush.ink.rows) return this.tops.now;
    const peaks = this.#peaksOf(tile);
    if ('values' in peaks) return peaks.values;
    peaks.then(
      () => this.changed(),
      () => {}, // requested again with the next drawing
    );
    return null;
  }

  #peaksOf({ pool, level, row }: TileName): Promise<ArrayResult> | ArrayResult {
    const { skip } = this.brush.ink;
    const key = `${pool}/${level}/${row}/${skip}`;
    const kept = this.#peaks.get(key);
    if (kept) return kept;
    const asked = this.source.peaks!(this.place, pool, level, row, skip);
    this.#peaks.set(key, asked);
    asked.then(
      (block) => this.#peaks.set(key, block),
      () => this.#peaks.delete(key),
    );
    return asked;
  }
}
