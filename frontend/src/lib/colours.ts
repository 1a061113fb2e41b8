/**
 * Colour maps as tables of 256 colours. Their lightness is monotonic, so they are readable without colour vision and in
 * print. `reds` has one hue: larger values are darker on a light page and brighter on a dark page.
 */
export type MapName = 'reds' | 'viridis' | 'cividis' | 'inferno';

/** Blue below 0, red above, and 0 in the colour of the page: for differences. */
export const DIVERGING = 'difference';

export const MAPS: MapName[] = ['reds', 'viridis', 'cividis', 'inferno'];

const STOPS: Record<MapName | 'redsDark' | 'difference' | 'differenceDark', string> = {
  reds: 'fdf8f5fde3d8f9c1abf49a7ceb7250d94c2fb7301b8a1c104f0b08',
  redsDark: '1f1c1a3a211b5c281d86301fb33d26d9573cee7f62f8ae96fde3d8',
  difference: '0b3c7a2f6db07aa9d6c5daecf8f6f2f6cfc0e8917ac2473a7d1220',
  differenceDark: 'a9d6ff62a8e8336fac1f3f611a18175e2b1da54c2ce27d50ffc6a3',
  viridis: '44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219fde725',
  cividis: '00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846fee838',
  inferno: '0000040b0724210c4a3d096557106e71196e8a226aa32c61bc3754d24644e45a31f1731df98e09fcac11f9cb35f2ea69fcffa4',
};

/** Red, green, blue for 0..255. */
export type Table = Uint8ClampedArray;

const made = new Map<string, Table>();

export function table(name: MapName | typeof DIVERGING, dark: boolean): Table {
  const key = dark && (name === 'reds' || name === DIVERGING) ? (`${name}Dark` as const) : name;
  if (!made.has(key)) made.set(key, interpolate(STOPS[key]));
  return made.get(key)!;
}

function interpolate(stops: string): Table {
  const colours = stops.match(/../g)!.map((pair) => parseInt(pair, 16));
  const last = colours.length / 3 - 1;
  const found = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * last;
    const low = Math.min(Math.floor(at), last - 1);
    for (let c = 0; c < 3; c++) {
      const [a, b] = [colours[low * 3 + c], colours[low * 3 + 3 + c]];
      found[i * 3 + c] = a + (b - a) * (at - low);
    }
  }
  return found;
}

/** Index in a colour table of a value between `least` and `most`. */
export function level(value: number, least: number, most: number): number {
  const share = most > least ? (value - least) / (most - least) : 0;
  return Math.round(255 * Math.min(1, Math.max(0, share)));
}

export function css(map: Table, at: number): string {
  return `rgb(${map[at * 3]} ${map[at * 3 + 1]} ${map[at * 3 + 2]})`;
}

/** Text colour with the better contrast on a colour: black or white. */
export function inkOn(map: Table, at: number): string {
  return luminance(map, at) > 0.179 ? '#000000' : '#ffffff';
}

/** Relative luminance by WCAG, 0 to 1. */
export function luminance(map: Table, at: number): number {
  const [r, g, b] = [0, 1, 2].map((c) => {
    const part = map[at * 3 + c] / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
