// Client of the HTTP API of Stasis, over fetch: Node 20 or newer, and browsers. docs/typescript.md has examples.
import type { components } from './api.js';
import type { Answer, Method, PathOf, Raw, Request, Rest } from './typed.js';

export type { components, operations, paths } from './api.js';
export type { Answer, Method, PathOf, Raw, Request } from './typed.js';

type Schemas = components['schemas'];
export type CreateSession = Schemas['CreateSession'];
export type SessionInfo = Schemas['Session'];
export type EndAnswer = Schemas['EndAnswer'];
export type Snapshot = Schemas['Snapshot'];
export type Default = Schemas['Default'];
export type PastDefault = Schemas['PastDefault'];
export type ErrorCode = Schemas['ErrorCode'];
export type StateFormat = 'stasis' | 'playwright' | 'puppeteer' | 'netscape';

/** Which part of a session is kept: `memory` also keeps its frozen Chrome. */
export type SaveMode = 'none' | 'filesystem' | 'memory';

export type EndOptions = { save?: SaveMode; asDefault?: boolean; overwrite?: boolean };

export type Options = {
  /** The daemon's address. By default STASIS_URL, or http://127.0.0.1:8080. */
  url?: string;
  /** An API key. By default STASIS_API_KEY. */
  key?: string;
  /** How often a call is repeated if the daemon is busy (429, 503) or the connection is lost. By default 2. */
  retries?: number;
  /** For tests, or to set a proxy. */
  fetch?: typeof fetch;
};

type Problem = Partial<Schemas['Error'] & Omit<EndAnswer, 'code' | 'message' | 'request_id'>>;
type Sent = { path?: object; query?: object; body?: unknown; raw?: Raw; signal?: AbortSignal };

const longestWait = 30; // seconds; a server that asks for more is not asked again

// The calls that take an Idempotency-Key, so that a repeat does nothing a second time.
const idempotent = /^\/v1\/(sessions(\/\{session_id\}\/(snapshots|message))?|snapshots|keys|tickets)$|\/memory\/v2\/session$/;

/**
 * An error that the daemon answered. Programs use `code`; `message` is for people, and `requestId` finds the request in
 * the daemon's log. `answer` is the whole answer: of a `version_conflict` at an end, it has the snapshot that was saved.
 * If something else answered, such as a proxy, `code` is empty.
 */
export class StasisError extends Error {
  override readonly name = 'StasisError';
  readonly status: number;
  readonly code: ErrorCode | '';
  readonly requestId: string;
  readonly answer: Problem;

  constructor(status: number, answer: Problem, reason = '') {
    super(`${answer.code ?? status}: ${answer.message ?? reason}`);
    this.status = status;
    this.code = answer.code ?? '';
    this.requestId = answer.request_id ?? '';
    this.answer = answer;
  }
}

/** A daemon, and the key that calls it. */
export class Stasis {
  readonly url: string;
  readonly #key: string;
  readonly #retries: number;
  readonly #fetch: typeof fetch;

  constructor(options: Options = {}) {
    this.url = (options.url ?? environment('STASIS_URL') ?? 'http://127.0.0.1:8080').replace(/\/+$/, '');
    this.#key = options.key ?? environment('STASIS_API_KEY') ?? '';
    if (!this.#key) throw new TypeError('key: is missing; give one, or set STASIS_API_KEY');
    this.#retries = options.retries ?? 2;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** Makes any call of openapi.yaml and returns its JSON, such as `stasis.call('GET', '/v1/me')`. */
  async call<M extends Method, P extends PathOf<M>>(method: M, path: P, ...[request]: Rest<M, P>): Promise<Answer<M, P>> {
    const text = await (await this.#send(method, path, request as Sent | undefined)).text();
    return (text === '' ? undefined : JSON.parse(text)) as Answer<M, P>;
  }

  /** Makes any call and returns its answer unread, for bytes, streams and headers. */
  fetch<M extends Method, P extends PathOf<M>>(method: M, path: P, ...[request]: Rest<M, P>): Promise<Response> {
    return this.#send(method, path, request as Sent | undefined);
  }

  /** Creates a session, fresh or restored. */
  async create(fields: CreateSession = {}, signal?: AbortSignal): Promise<Session> {
    return new Session(this, await this.call('POST', '/v1/sessions', { body: fields, ...(signal && { signal }) }));
  }

  /**
   * Runs a function with a session, which ends with it. With `user`, the session starts from that user's default, or
   * fresh if there is none. With `save`, its end saves it and, unless `asDefault` is false, makes it the user's default.
   * If the function throws, nothing is saved. A session that the function has ended stays ended.
   */
  async session<T>(
    options: CreateSession & { user?: string; save?: SaveMode; asDefault?: boolean },
    use: (session: Session) => T | Promise<T>,
  ): Promise<T> {
    const { user, save = 'none', asDefault = true, ...fields } = options;
    const restore: CreateSession =
      user === undefined ? {} : { user_id: user, restore_default_environment_from_user_id: user, if_missing: 'fresh' };
    const session = await this.create({ ...restore, ...fields });
    let result: T;
    try {
      result = await use(session);
    } catch (error) {
      await session.end().catch(() => {}); // the function's own error counts
      throw error;
    }
    if (!session.ended) await session.end({ save, asDefault: asDefault && save !== 'none' });
    return result;
  }

  /** A session, running or ended. */
  async get(sessionId: string): Promise<Session> {
    return new Session(this, await this.call('GET', '/v1/sessions/{session_id}', { path: { session_id: sessionId } }));
  }

  /** All sessions that the key may see, newest first. */
  async *sessions(query: NonNullable<Request<'GET', '/v1/sessions'>['query']> = {}): AsyncGenerator<Session> {
    for (let after: string | null | undefined; after !== null; ) {
      const page = { ...query, ...(after && { start_after: after }) };
      const answer: Response = await this.fetch('GET', '/v1/sessions', { query: page });
      for (const info of (await answer.json()) as SessionInfo[]) yield new Session(this, info);
      after = answer.headers.get('X-Next-Token');
    }
  }

  /** A user's default environment. Without one, the error is `default_not_found`. */
  default(user: string): Promise<Default> {
    return this.call('GET', '/v1/users/{user_id}/default', { path: { user_id: user } });
  }

  /** Makes a snapshot the default; with `ifVersion` only if that version is current, or `version_conflict`. */
  setDefault(user: string, snapshotId: string, ifVersion?: number): Promise<Default> {
    const body = { snapshot_id: snapshotId, if_version: ifVersion ?? null };
    return this.call('PUT', '/v1/users/{user_id}/default', { path: { user_id: user }, body });
  }

  /** The versions of the default, newest first. */
  async *defaultHistory(user: string): AsyncGenerator<PastDefault> {
    for (let after: string | null | undefined; after !== null; ) {
      const request = { path: { user_id: user }, query: after ? { start_after: after } : {} };
      const page: { history: PastDefault[]; next_token: string | null } =
        await this.call('GET', '/v1/users/{user_id}/default/history', request);
      yield* page.history;
      after = page.next_token;
    }
  }

  /** Makes an earlier version the default again: by default the newest one with another snapshot that is available. */
  async rollback(user: string, version?: number): Promise<Default> {
    const current = await this.default(user);
    for await (const past of this.defaultHistory(user)) {
      const earlier = past.version < current.version && past.snapshot_id !== current.snapshot_id;
      const wanted = version === undefined ? earlier : past.version === version;
      if (wanted && past.available && past.snapshot_id) return this.setDefault(user, past.snapshot_id, current.version);
    }
    const missing = version === undefined ? 'earlier version' : `version ${version}`;
    throw new RangeError(`version: the default of ${user} has no ${missing} that is available`);
  }

  /** Changes settings of a user, such as `login_check`; null removes one. */
  updateUser(user: string, settings: Schemas['UserPatch']): Promise<Schemas['User']> {
    return this.call('PATCH', '/v1/users/{user_id}', { path: { user_id: user }, body: settings });
  }

  /** Opens the user's default and its `login_check`. Whether the site is logged in is in `logged_in`. */
  checkLogin(user: string): Promise<Schemas['LoginOutcome']> {
    return this.call('POST', '/v1/users/{user_id}/default/check', { path: { user_id: user } });
  }

  /** The snapshots of a user, or of all that the key may act for, newest first. */
  async *snapshots(user?: string): AsyncGenerator<Snapshot> {
    for (let after: string | null | undefined; after !== null; ) {
      const query = { ...(user !== undefined && { user_id: user }), ...(after && { start_after: after }) };
      const page: { snapshots: Snapshot[]; next_token: string | null } = await this.call('GET', '/v1/snapshots', { query });
      yield* page.snapshots;
      after = page.next_token;
    }
  }

  /** A snapshot, and when its logins are expected to end. */
  snapshot(id: string): Promise<Snapshot> {
    return this.call('GET', '/v1/snapshots/{snapshot_id}', { path: { snapshot_id: id } });
  }

  /** Reads a snapshot to its end. Damage is in the answer: `ok` and `problems`. */
  verify(id: string): Promise<Schemas['Soundness']> {
    return this.call('POST', '/v1/snapshots/{snapshot_id}/verify', { path: { snapshot_id: id } });
  }

  /** What changed from one snapshot to another; `values` needs the right `secrets`. */
  diff(id: string, otherId: string, values = false): Promise<Schemas['Diff']> {
    const path = { snapshot_id: id, other_id: otherId };
    return this.call('GET', '/v1/snapshots/{snapshot_id}/diff/{other_id}', { path, query: { values } });
  }

  /** A snapshot's state: JSON, or text in the format netscape. */
  async state(id: string, format: StateFormat = 'stasis'): Promise<unknown> {
    const query = { format, envelope: true };
    const answer = await this.call('GET', '/v1/snapshots/{snapshot_id}/state', { path: { snapshot_id: id }, query });
    return (answer as Schemas['StateEnvelope']).state;
  }

  /** A snapshot's archive, unread. Without `recipients` (age public keys), anyone can read its logins. */
  archive(id: string, recipients: string[] = []): Promise<Response> {
    const query = { recipient: recipients };
    return this.fetch('GET', '/v1/snapshots/{snapshot_id}/archive', { path: { snapshot_id: id }, query });
  }

  /** Imports an environment, such as an archive or a `storageState` of Playwright. */
  importSnapshot(raw: Raw, query: Request<'POST', '/v1/snapshots'>['query']): Promise<Answer<'POST', '/v1/snapshots'>> {
    return this.call('POST', '/v1/snapshots', { raw, query });
  }

  async #send(method: Method, path: string, request: Sent = {}): Promise<Response> {
    const url = this.#address(path, request);
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}` };
    if (request.body !== undefined) headers['content-type'] = 'application/json';
    else if (request.raw !== undefined) headers['content-type'] = 'application/octet-stream';
    const once = method === 'POST' && idempotent.test(path);
    if (once) headers['idempotency-key'] = random();
    const conditional = typeof (request.body as { if_version?: unknown } | undefined)?.if_version === 'number';
    const repeatable = once || (method !== 'POST' && !conditional);
    const init: RequestInit = { method, headers, redirect: 'manual' }; // a redirect could take the key elsewhere
    const body = request.body === undefined ? request.raw : JSON.stringify(request.body);
    if (body !== undefined) init.body = body;
    if (request.signal) init.signal = request.signal;

    for (let attempt = 0; ; attempt++) {
      let wait = 0.5 * 2 ** attempt;
      try {
        const answer = await this.#fetch(url, init);
        if (answer.ok) return answer;
        wait = Number(answer.headers.get('retry-after') ?? wait);
        const error = new StasisError(answer.status, await problem(answer), answer.statusText || answer.type);
        const unsure = error.code === 'node_unavailable' && !repeatable; // another node may have carried it out
        if (unsure || ![429, 503].includes(answer.status) || attempt >= this.#retries || !(wait <= longestWait)) throw error;
      } catch (error) {
        const lost = error instanceof TypeError; // of fetch: no connection, or one that broke
        if (!lost || !repeatable || attempt >= this.#retries) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, wait * 1000));
      request.signal?.throwIfAborted();
    }
  }

  #address(path: string, request: Sent): URL {
    const names = (request.path ?? {}) as Record<string, string>;
    const url = new URL(this.url + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? '')));
    for (const [name, value] of Object.entries(request.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined) url.searchParams.append(name, String(one));
      }
    }
    return url;
  }
}

/** One session. `info` is the daemon's last answer about it. */
export class Session {
  readonly #stasis: Stasis;
  info: SessionInfo;
  /** The answer to `end`: it has the snapshot, also after `stasis.session(…)`. */
  ended: EndAnswer | undefined;

  constructor(stasis: Stasis, info: SessionInfo) {
    this.#stasis = stasis;
    this.info = info;
  }

  get id(): string {
    return this.info.session_id;
  }

  /** The address for CDP clients. It contains a ticket, so it needs no key. */
  get cdpUrl(): string {
    return this.#live('cdp_url');
  }

  /** The live view with control, for a person. It is a secret of the session, as `cdpUrl` is. */
  get agentUrl(): string {
    return this.#live('agent_url');
  }

  async refresh(): Promise<this> {
    this.info = await this.#stasis.call('GET', '/v1/sessions/{session_id}', this.#path);
    return this;
  }

  /**
   * Ends the session. `asDefault` makes the snapshot its user's default. If that has moved since the session started
   * from it, the session ends saved, and the error is `version_conflict`. With `overwrite`, the default moves all the same.
   */
  async end({ save = 'none', asDefault = false, overwrite = false }: EndOptions = {}): Promise<EndAnswer> {
    const conflict = overwrite ? 'overwrite' : 'keep';
    const move = asDefault ? ({ save_as_default: true, default_conflict: conflict } as const) : {};
    const query = { save_snapshot_mode: save, ...move };
    this.ended = await this.#stasis.call('DELETE', '/v1/sessions/{session_id}', { ...this.#path, query });
    return this.ended;
  }

  /** Saves the session while it continues. With `success: false`, the default was kept; `message` has the reason. */
  checkpoint(
    options: { label?: string; asDefault?: boolean; overwrite?: boolean } = {},
  ): Promise<Answer<'POST', '/v1/sessions/{session_id}/snapshots'>> {
    const body = {
      label: options.label ?? null,
      save_as_default: options.asDefault ?? false,
      default_conflict: options.overwrite ? 'overwrite' : 'keep',
    } as const;
    return this.#stasis.call('POST', '/v1/sessions/{session_id}/snapshots', { ...this.#path, body });
  }

  /** Resumes the paused or ended session under its ID, with a new `cdpUrl`; optionally from an older snapshot. */
  async resume(snapshotId?: string): Promise<this> {
    const body = { snapshot_id: snapshotId ?? null };
    await this.#stasis.call('POST', '/v1/sessions/{session_id}/resume', { ...this.#path, body });
    this.ended = undefined;
    return this.refresh();
  }

  /** Complete downloads of the session's pages, and uploads for them. */
  async files(): Promise<Schemas['File'][]> {
    return (await this.#stasis.call('GET', '/v1/sessions/{session_id}/files', this.#path)).files;
  }

  /** Gives the session a file, which pages can be given by its name. */
  upload(name: string, raw: Raw): Promise<{ name: string; size_bytes: number }> {
    return this.#stasis.call('POST', '/v1/sessions/{session_id}/files', { ...this.#path, query: { name }, raw });
  }

  /** The bytes of a file. `name` may be the GUID of a download. */
  async download(name: string): Promise<Uint8Array> {
    const path = { session_id: this.id, name };
    const answer = await this.#stasis.fetch('GET', '/v1/sessions/{session_id}/files/{name}', { path });
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** A link that opens the live view for somebody else: to watch, or with `control` also to give input. */
  link(
    body: { control?: boolean; expires_in_seconds?: number } = {},
  ): Promise<Answer<'POST', '/v1/sessions/{session_id}/links'>> {
    return this.#stasis.call('POST', '/v1/sessions/{session_id}/links', { ...this.#path, body });
  }

  get #path(): { path: { session_id: string } } {
    return { path: { session_id: this.id } };
  }

  #live(name: 'cdp_url' | 'agent_url'): string {
    const url = this.ended ? null : this.info[name];
    if (!url) throw new TypeError(`${name}: session ${this.id} has none; it has ended, or the key may not drive it`);
    return url;
  }
}

/** A new Idempotency-Key. crypto.randomUUID is missing in pages without TLS. */
function random(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

async function problem(answer: Response): Promise<Problem> {
  try {
    const body: unknown = await answer.json();
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {};
  } catch {
    return {};
  }
}
