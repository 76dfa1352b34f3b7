// What must compile, and what must not: tsc --noEmit checks it.
import { Stasis, StasisError, type ErrorCode, type Snapshot } from 'stasis-client';

const stasis = new Stasis({ url: 'http://127.0.0.1:8080', key: 'k' });

const session = await stasis.create({ engine: 'shell', viewport: { width: 1280, height: 720 }, labels: { team: 'qa' } });
export const url: string = session.cdpUrl;
export const engine: 'chrome' | 'shell' = session.info.engine;
// @ts-expect-error: a misspelt field
await stasis.create({ viewprt: { width: 1, height: 1 } });
// @ts-expect-error: no such engine
await stasis.create({ engine: 'firefox' });
// @ts-expect-error: no such mode
await session.end({ save: 'files' });

// @ts-expect-error: no such path
await stasis.call('GET', '/v1/session');
// @ts-expect-error: the path has no such method
await stasis.call('PUT', '/v1/sessions');
// @ts-expect-error: the path needs an ID
await stasis.call('GET', '/v1/snapshots/{snapshot_id}');
// @ts-expect-error: the ID has another name
await stasis.call('GET', '/v1/snapshots/{snapshot_id}', { path: { id: 'x' } });
// @ts-expect-error: no such parameter of the query
await stasis.call('GET', '/v1/snapshots', { query: { user: 'ada' } });
// @ts-expect-error: the query needs a format
await stasis.importSnapshot('[]', {});
// @ts-expect-error: this call takes no bytes
await stasis.call('POST', '/v1/sessions', { raw: 'x' });
export const page: { snapshots: Snapshot[] } = await stasis.call('GET', '/v1/snapshots', { query: { user_id: 'ada', limit: 2 } });
export const nothing: undefined = await stasis.call('DELETE', '/v1/snapshots/{snapshot_id}', { path: { snapshot_id: 'x' } });

export function full(error: unknown): boolean {
  // @ts-expect-error: no such code
  if (error instanceof StasisError && error.code === 'full') return true;
  const code: ErrorCode = 'store_full';
  return error instanceof StasisError && error.code === code && error.answer.snapshot === null;
}
