import type { HeadKey, Source } from './source';

const TILE = 256; // cells of a tile's side at level 0, see docs/formats/wire.md

/** A block of a map: its first query and key, and how many of each. */
export interface Block {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

/** The weights of a block in row-major order. They come from tiles of level 0, which are exact at any length. */
export async function windowWeights(
  source: Pick<Source, 'tile'>,
  place: HeadKey,
  { row, column, rows, columns }: Block,
  signal?: AbortSignal,
): Promise<Float32Array> {
  const found = new Float32Array(rows * columns);
  const first = [Math.floor(row / TILE), Math.floor(column / TILE)];
  const last = [Math.floor((row + rows - 1) / TILE), Math.floor((column + columns - 1) / TILE)];
  const copies: Promise<void>[] = [];
  for (let y = first[0]; y <= last[0]; y++) for (let x = first[1]; x <= last[1]; x++) copies.push(copy(y, x));
  await Promise.all(copies);
  return found;

  async function copy(y: number, x: number): Promise<void> {
    const { values, shape } = await source.tile(place, 'mean', 0, y, x, signal);
    const [low, high] = [Math.max(column, x * TILE), Math.min(column + columns, x * TILE + shape[1])];
    for (let i = Math.max(row, y * TILE); i < Math.min(row + rows, y * TILE + shape[0]); i++) {
      const from = (i - y * TILE) * shape[1] - x * TILE;
      found.set(values.subarray(from + low, from + high), (i - row) * columns + low - column);
    }
  }
}
