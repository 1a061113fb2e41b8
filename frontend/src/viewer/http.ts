import { ask, events, json, posted } from '$lib/api';
import type { ArrayResult, Info, RecordingSummary, Listing, Metadata, HeadKey, Pool, Profiles, Progress, Source, Top } from './source';

/** Data source: the server that sent this page. */
export const http: Source = {
  list,
  meta: (id) => json<Metadata>(recording(id)),
  profiles: (id, signal) => json<Profiles>(`${recording(id)}/profiles`, { signal }),
  thumbs: (id, entry, batch, side, signal) => block(`${recording(id)}/thumbs/${entry}/${batch}?side=${side}`, signal),
  info: (place, signal) => json<Info>(head(place), { signal }),
  tile: (place, pool, level, row, column, signal) =>
    block(`${head(place)}/tiles/${pool}/${level}/${row}/${column}`, signal),
  peaks: (place: HeadKey, pool: Pool, level, row, skip, signal) =>
    block(`${head(place)}/peaks/${pool}/${level}/${row}${skip ? `?skip=${skip}` : ''}`, signal),
  row: (place, i, signal) => block(`${head(place)}/rows/${i}`, signal),
  column: (place, j, signal) => block(`${head(place)}/columns/${j}`, signal),
  top: (place, i, k, signal) => json<Top>(`${head(place)}/top/${i}?k=${k}`, { signal }),
  record: (text, model, signal) => events<Progress>('/api/recordings', posted({ text, model }, signal)),
};

const recording = (id: string): string => `/api/recordings/${encodeURIComponent(id)}`;

const head = ({ id, entry, batch, head }: HeadKey): string => `${recording(id)}/maps/${entry}/${batch}/${head}`;

async function block(path: string, signal?: AbortSignal): Promise<ArrayResult> {
  const answer = await ask(path, { signal });
  return {
    values: new Float32Array(await answer.arrayBuffer()),
    shape: (answer.headers.get('Regard-Shape') ?? '').split(',').map(Number),
    exact: answer.headers.get('Regard-Exact') !== 'no',
  };
}

async function list(): Promise<Listing> {
  const answer = await ask('/api/recordings');
  return { lines: (await answer.json()) as RecordingSummary[], records: (answer.headers.get('Allow') ?? '').includes('POST') };
}
