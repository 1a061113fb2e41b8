/** Requests to the server. An error response becomes an `ApiError` with a message that can be shown. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** HTTP status, or 0 if the server did not answer. */
    readonly status: number,
    /** Name of the library's exception, if there is one: a page can say the same in its own language. */
    readonly kind: string | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

export interface LessonEntry {
  name: string;
  state: Record<string, unknown>;
}

export interface Answer<State, Shown> {
  /** The state that `shown` belongs to. */
  state: State;
  shown: Shown;
  code: string;
}

export const lessons = (): Promise<LessonEntry[]> => json('/api/lessons');

export function show<State, Shown>(name: string, state: State, signal?: AbortSignal): Promise<Answer<State, Shown>> {
  return json(`/api/lessons/${encodeURIComponent(name)}`, posted(state, signal));
}

export async function json<T>(path: string, init: RequestInit = {}): Promise<T> {
  return (await ask(path, init)).json() as Promise<T>;
}

/** Parses little-endian float32, the format of all arrays on the wire. */
export async function floats(path: string, init: RequestInit = {}): Promise<Float32Array> {
  return new Float32Array(await (await ask(path, init)).arrayBuffer());
}

export function posted(body: unknown, signal?: AbortSignal): RequestInit {
  return { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal };
}

export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: 'same-origin', ...init });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError('', 0);
  }
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => ({}))) as { error?: unknown; kind?: unknown };
  const kind = typeof said.kind === 'string' ? said.kind : null;
  throw new ApiError(typeof said.error === 'string' ? said.error : answer.statusText, answer.status, kind);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Yields the parsed events of a server-sent stream until it ends or `signal` aborts it, which is not an error. */
export async function* events<T>(path: string, init: RequestInit = {}): AsyncGenerator<T> {
  try {
    const answer = await ask(path, { ...init, headers: { Accept: 'text/event-stream', ...init.headers } });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (waiting + value.replaceAll('\r\n', '\n')).split('\n\n');
      waiting = parts.pop()!;
      for (const part of parts) {
        const data = dataOf(part);
        if (data) yield JSON.parse(data) as T;
      }
    }
  } catch (error) {
    if (!isAbort(error)) throw error;
  }
}

export function dataOf(event: string): string {
  return event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trimStart())
    .join('\n');
}
