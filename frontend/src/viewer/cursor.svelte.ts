import { isAbort } from '$lib/api';
import type { TileStore } from './tile-store';

export interface Cell {
  row: number;
  column: number;
}

const KEPT = 64;
const PAUSE = 40; // milliseconds: a pointer that moves over many rows requests few of them

/** The selected cell, with its row and column of weights as they arrive. */
export class Cursor {
  cell = $state.raw<Cell | null>(null);
  row = $state.raw<Float32Array | null>(null);
  column = $state.raw<Float32Array | null>(null);
  readonly #rows = new Map<number, Float32Array>();
  readonly #columns = new Map<number, Float32Array>();
  #stop: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly sheet: TileStore) {}

  /** Exact weight of the cell; undefined while it is loading. */
  get weight(): number | undefined {
    if (!this.cell) return undefined;
    const { row, column } = this.cell;
    return this.row?.[column] ?? this.column?.[row] ?? this.sheet.weight(row, column);
  }

  move(cell: Cell | null): void {
    if (cell?.row === this.cell?.row && cell?.column === this.cell?.column) return;
    this.cell = cell;
    this.row = cell ? (this.#rows.get(cell.row) ?? null) : null;
    this.column = cell ? (this.#columns.get(cell.column) ?? null) : null;
    clearTimeout(this.#timer);
    if (cell && !(this.row && this.column)) this.#timer = setTimeout(() => void this.#ask(cell), PAUSE);
  }

  leave(): void {
    clearTimeout(this.#timer);
    this.#stop?.abort();
  }

  async #ask(cell: Cell): Promise<void> {
    this.#stop?.abort();
    const { signal } = (this.#stop = new AbortController());
    const { source, place } = this.sheet;
    const both = [
      this.row ??
        source.row(place, cell.row, signal).then(({ values }) => {
          keep(this.#rows, cell.row, values);
          if (this.cell?.row === cell.row) this.row = values;
        }),
      this.column ??
        source.column(place, cell.column, signal).then(({ values }) => {
          keep(this.#columns, cell.column, values);
          if (this.cell?.column === cell.column) this.column = values;
        }),
    ];
    for (const result of await Promise.allSettled(both)) {
      if (result.status === 'rejected' && !isAbort(result.reason)) console.warn(result.reason);
    }
  }
}

function keep(kept: Map<number, Float32Array>, at: number, values: Float32Array): void {
  kept.set(at, values);
  for (const old of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(old);
  }
}
