import { ApiError } from '$lib/api';
import type { ArrayResult, Info, RecordingSummary, Metadata, HeadKey, Profiles, Source, Top } from './source';

/** The part of anywidget's model that is used here. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, handler: (...given: never[]) => void): void;
  off(event: string, handler: (...given: never[]) => void): void;
  send(message: unknown): void;
}

interface Reply {
  number: number;
  json?: unknown;
  shape?: number[];
  exact?: boolean;
  error?: string;
  status?: number;
}

interface Waiting {
  take(reply: Reply, buffers: DataView[]): void;
  refuse(error: unknown): void;
}

/** Data source: the kernel of a notebook. A request is a message with an id, and its response has the same id. */
export function messages(model: Model): Source & { close(): void } {
  const waiting = new Map<number, Waiting>();
  let last = 0;

  function hear(reply: Reply, buffers: DataView[] = []): void {
    const found = waiting.get(reply.number);
    waiting.delete(reply.number);
    if (reply.error !== undefined) found?.refuse(new ApiError(reply.error, reply.status ?? 500));
    else found?.take(reply, buffers);
  }
  model.on('msg:custom', hear as (...given: never[]) => void);

  function asked<T>(question: string, given: object, read: Read<T>, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((done, refuse) => {
      const number = ++last;
      if (signal?.aborted) return refuse(gone());
      waiting.set(number, { take: (reply, buffers) => done(read(reply, buffers)), refuse });
      signal?.addEventListener('abort', () => {
        if (!waiting.delete(number)) return;
        model.send({ number, forget: true });
        refuse(gone());
      });
      model.send({ number, question, given });
    });
  }

  const at = ({ id, entry, batch, head }: HeadKey) => ({ id, entry, batch, head });
  return {
    list: async () => ({ lines: await asked('list', {}, json<RecordingSummary[]>), records: false }),
    meta: (id) => asked('meta', { id }, json<Metadata>),
    profiles: (id, signal) => asked('profiles', { id }, json<Profiles>, signal),
    thumbs: (id, entry, batch, side, signal) => asked('thumbs', { id, entry, batch, side }, block, signal),
    info: (place, signal) => asked('info', at(place), json<Info>, signal),
    tile: (place, pool, level, row, column, signal) =>
      asked('tile', { ...at(place), pool, level, row, column }, block, signal),
    peaks: (place, pool, level, row, skip, signal) =>
      asked('peaks', { ...at(place), pool, level, row, skip }, block, signal),
    row: (place, i, signal) => asked('row', { ...at(place), i }, block, signal),
    column: (place, j, signal) => asked('column', { ...at(place), j }, block, signal),
    top: (place, i, k, signal) => asked('top', { ...at(place), i, k }, json<Top>, signal),
    close: () => model.off('msg:custom', hear as (...given: never[]) => void),
  };
}

type Read<T> = (reply: Reply, buffers: DataView[]) => T;

const json = <T>(reply: Reply): T => reply.json as T;

/** Array of a reply. The bytes are copied, because a Float32Array needs an aligned offset. */
function block(reply: Reply, [buffer]: DataView[]): ArrayResult {
  const bytes = buffer ? buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength) : new ArrayBuffer();
  return { values: new Float32Array(bytes as ArrayBuffer), shape: reply.shape ?? [], exact: reply.exact ?? true };
}

const gone = (): DOMException => new DOMException('the request was cancelled', 'AbortError');
