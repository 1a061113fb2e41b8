import type { Head } from './heads';

/** Room for the small pictures of the compact wall, in pixels. */
export interface Room {
  width: number;
  height: number;
  /** Least side of a picture with its gap: smaller ones cannot be pointed at. */
  least: number;
  most: number;
}

/** A head and its place in the grid, both from 0. */
export interface Place {
  head: Head;
  row: number;
  column: number;
}

export interface Grid {
  places: Place[];
  /** What is counted from left to right: layers or heads, or nothing if the wall is sorted by a measure. */
  across: 'layers' | 'heads' | null;
  /** Labels of the columns and rows; empty if the wall is sorted by a measure. */
  columns: number[];
  rows: number[];
  /** Number of columns and side of a picture with its gap. */
  count: number;
  size: number;
}

/** Layers x heads as a matrix, with the longer side along the longer side of the room. */
export function matrixGrid(heads: Head[], all: Head[], room: Room): Grid {
  const entries = [...new Set(all.map((head) => head.entry))];
  const numbers = [...new Set(all.map((head) => head.number))].toSorted((a, b) => a - b);
  const layers = entries.map((entry) => all.find((head) => head.entry === entry)!.layer);
  const sideways = Math.min(room.width / layers.length, room.height / numbers.length);
  const upright = Math.min(room.width / numbers.length, room.height / layers.length);
  const size = Math.max(room.least, Math.min(room.most, Math.floor(Math.max(sideways, upright))));
  const place = (head: Head): [number, number] => [entries.indexOf(head.entry), numbers.indexOf(head.number)];
  const across = sideways >= upright ? 'layers' : 'heads';
  const places = heads.map((head) => {
    const [layer, number] = place(head);
    return across === 'layers' ? { head, row: number, column: layer } : { head, row: layer, column: number };
  });
  const [columns, rows] = across === 'layers' ? [layers, numbers] : [numbers, layers];
  return { places, across, columns, rows, count: columns.length, size };
}

/** Heads in the given order, row by row, as large as they all fit. */
export function orderedGrid(heads: Head[], room: Room): Grid {
  let size = room.most;
  while (size > room.least && Math.floor(room.width / size) * Math.floor(room.height / size) < heads.length) size--;
  const count = Math.max(1, Math.floor(room.width / size));
  const places = heads.map((head, at) => ({ head, row: Math.floor(at / count), column: at % count }));
  return { places, across: null, columns: [], rows: [], count, size };
}

/** The place that an arrow key leads to: the next one in that direction that has a head. */
export function neighbour(places: Place[], from: Place, key: string): Place | null {
  const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[key];
  if (key === 'Home') return places[0] ?? null;
  if (key === 'End') return places.at(-1) ?? null;
  if (!by) return null;
  const [down, right] = by;
  const ahead = places.filter(({ row, column }) =>
    down ? column === from.column && (row - from.row) * down > 0 : row === from.row && (column - from.column) * right > 0,
  );
  const far = (place: Place): number => Math.abs(place.row - from.row) + Math.abs(place.column - from.column);
  return ahead.toSorted((a, b) => far(a) - far(b))[0] ?? null;
}
