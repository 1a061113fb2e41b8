import { isAbort, ApiError } from '$lib/api';
import { clamp } from '$lib/numbers';
import { Cursor, type Cell } from './cursor.svelte';
import { DeepZoom, type Frame } from './deep-zoom';
import type { Axis } from './gutter';
import type { Tokens } from './heads';
import { TilePainter, type ColourScale } from './colour-scale';
import type { LinkedMaps } from './linked-maps';
import { TileStore } from './tile-store';
import type { MapSource } from './difference';
import type { Info, HeadKey } from './source';
import type { ColourLimits } from './colour-limits';
import type { View } from './view.svelte';
import { keyCommand } from './key-commands';

const POLL = 700;
const WHOLE = { x: 0, y: 0, zoom: 0 };

const pause = (time: number): Promise<void> => new Promise((done) => setTimeout(done, time));

/** State shared by all maps that are shown side by side. */
export interface Shared {
  view: View;
  tops: ColourLimits;
  link: LinkedMaps;
}

/** State of one open map: its visible part, selected cell and data. */
export class MapState {
  info = $state.raw<Info | null>(null);
  failure = $state.raw<ApiError | null>(null);
  deep = $state.raw<DeepZoom | null>(null);
  cursor = $state.raw<Cursor | null>(null);
  frame = $state.raw<Frame | null>(null);
  /** Incremented when a tile arrives or colours change. */
  tick = $state(0);
  estimated = $state(false);

  constructor(
    readonly source: MapSource,
    readonly place: HeadKey,
    readonly shared: Shared,
    /** Whether the address keeps the position of this map. */
    readonly first: boolean,
  ) {
    void this.open();
  }

  get cell(): Cell | null {
    return this.cursor?.cell ?? null;
  }

  get held(): boolean {
    const { cell } = this.shared.view.now;
    return cell[0] >= 0 && cell[1] >= 0;
  }

  async open(): Promise<void> {
    try {
      this.info = await this.source.info(this.place);
      this.failure = null;
    } catch (error) {
      this.failure = error instanceof ApiError ? error : new ApiError(String(error), 0);
    }
  }

  /** Mounts the map in an element; returns the function that unmounts it. */
  begin(element: HTMLElement, ink: ColourScale): () => void {
    const { view, tops, link } = this.shared;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const sheet = new TileStore(this.source, this.place, this.info!, tops, new TilePainter(ink));
    const deep = new DeepZoom(element, sheet, view.now.pool, { ...view.now }, still);
    const cursor = new Cursor(sheet);
    const leave = link.join(deep);
    const stop = new AbortController();
    deep.onframe = (frame) => {
      this.frame = frame;
      link.moved(deep);
      if (this.first && link.leads(deep)) Object.assign(view.now, deep.camera);
    };
    deep.onload = () => {
      this.tick++;
      this.estimated = deep.estimated;
    };
    deep.onmove = (cell) => {
      if (!this.held) cursor.move(cell);
    };
    deep.onpick = ({ row, column }) => {
      const same = view.now.cell[0] === row && view.now.cell[1] === column;
      view.now.cell = same ? [-1, -1] : [row, column];
    };
    [this.deep, this.cursor] = [deep, cursor];
    void this.#refine(sheet, stop.signal);
    return () => {
      stop.abort();
      leave();
      cursor.leave();
      deep.destroy();
      [this.deep, this.cursor, this.frame] = [null, null, null];
    };
  }

  /** Polls the server, which computes the exact map while it is open, and replaces estimated tiles. */
  async #refine(sheet: TileStore, signal: AbortSignal): Promise<void> {
    while (!this.info!.exact || sheet.rough) {
      await pause(POLL);
      if (signal.aborted) return;
      try {
        const now = await this.source.info(this.place, signal);
        if (now.progress > this.info!.progress || now.exact) await sheet.renew();
        this.info = sheet.info = now;
      } catch (error) {
        if (isAbort(error)) return;
        await pause(4 * POLL);
      }
    }
  }

  /** Selects the pinned cell of the view. */
  hold(row: number, column: number): void {
    if (!this.cursor || !this.info || row < 0 || column < 0) return;
    this.cursor.move({ row: clamp(row, 0, this.info.n - 1), column: clamp(column, 0, this.info.m - 1) });
  }

  /** Moves to the position in the address if it differs. */
  go(x: number, y: number, zoom: number): void {
    if (!this.deep || !this.first) return;
    const now = this.deep.camera;
    const near = Math.abs(now.zoom - zoom) < 1e-6 && Math.abs(now.x - x) + Math.abs(now.y - y) < 1e-6;
    if (!near) this.deep.look({ x, y, zoom });
  }

  all(): void {
    this.deep?.look(WHOLE);
  }

  /** Keeps the selected cell visible. */
  zoom(factor: number): void {
    this.deep?.zoomBy(factor);
    const { cell } = this;
    if (cell) requestAnimationFrame(() => this.deep?.reveal(cell.row, cell.column));
  }

  lead(): void {
    if (this.deep) this.shared.link.lead(this.deep);
  }

  key(event: KeyboardEvent): void {
    const { deep, info, frame } = this;
    if (!deep || !info || !frame) return;
    const far = Math.max(1, Math.round(64 / frame.size));
    const found = keyCommand(event, this.cell ?? middle(frame), info.n, info.m, far);
    if (found === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (found === 'all') this.all();
    else if (found === 'leave') {
      this.shared.view.now.cell = [-1, -1];
      this.cursor?.move(null);
    } else if ('zoom' in found) this.zoom(found.zoom);
    else {
      this.shared.view.now.cell = [found.to.row, found.to.column];
      deep.reveal(found.to.row, found.to.column);
    }
  }

  /** Axis of the labels: keys from left to right, or queries from top to bottom. */
  axes({ queries, keys }: Tokens): { across: Axis; down: Axis } {
    const { left, top, size } = this.frame!;
    const { n, m } = this.info!;
    return {
      across: { start: left, size, count: m, texts: keys, at: this.cell?.column ?? -1, vertical: false },
      down: { start: top, size, count: n, texts: queries, at: this.cell?.row ?? -1, vertical: true },
    };
  }
}

function middle({ left, top, size, width, height }: Frame): Cell {
  return { row: Math.floor(top + height / size / 2), column: Math.floor(left + width / size / 2) };
}
