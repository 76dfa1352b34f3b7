// Tests of the client with a fetch that fails in ways the daemon seldom does: node --test
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stasis, StasisError } from 'stasis-client';

// A client whose calls get these answers in turn, and what it has sent. An Error is thrown.
function client(answers, options = {}) {
  const sent = [];
  const fetch = async (url, init) => {
    sent.push({ url: String(url), ...init });
    const next = answers.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  return { sent, stasis: new Stasis({ url: 'http://stasis.example/', key: 'secret', fetch, ...options }) };
}
const json = (status, body, headers) => new Response(JSON.stringify(body), { status, headers });
const lost = () => new TypeError('fetch failed');
const busy = () => json(503, { code: 'shutting_down', message: 'the daemon stops', request_id: 'r1' }, { 'retry-after': '0' });
const session = { session_id: 'a', cdp_url: 'ws://x' };

test('a busy daemon is asked again, with the same Idempotency-Key', async () => {
  const { sent, stasis } = client([busy(), lost(), json(201, session)]);
  assert.equal((await stasis.create({ labels: { a: 'b' } })).cdpUrl, 'ws://x');
  assert.equal(sent.length, 3);
  assert.equal(new Set(sent.map((one) => one.headers['idempotency-key'])).size, 1);
  assert.match(sent[0].headers['idempotency-key'], /^[0-9a-f]{32}$/);
  assert.equal(sent[0].headers.authorization, 'Bearer secret');
  assert.equal(sent[0].redirect, 'manual');
});

test('what is not repeated', async () => {
  for (const [answers, call, error] of [
    [[json(201, session), lost()], async (stasis) => (await stasis.create()).link(), TypeError],
    [[lost()], (stasis) => stasis.setDefault('ada', 'snap', 3), TypeError],
    [[json(500, { code: 'save_failed' })], (stasis) => stasis.get('a'), StasisError],
    [[json(201, session), json(503, { code: 'node_unavailable' }, { 'retry-after': '0' })], async (stasis) => (await stasis.create()).link(), StasisError],
    [[json(429, { code: 'too_many_attempts' }, { 'retry-after': '600' })], (stasis) => stasis.get('a'), StasisError],
    [[new Response('<h1>Bad gateway', { status: 502, statusText: 'Bad Gateway' })], (stasis) => stasis.get('a'), /502: Bad Gateway/],
    [[new Response(null, { status: 302, headers: { location: '/elsewhere' } })], (stasis) => stasis.get('a'), /302/],
  ]) {
    await assert.rejects(async () => call(client(answers).stasis), error);
    assert.equal(answers.length, 0);
  }
  await assert.rejects(client([busy()], { retries: 0 }).stasis.get('a'), {
    name: 'StasisError', status: 503, code: 'shutting_down', requestId: 'r1', message: 'shutting_down: the daemon stops',
  });
});

test('paths, queries, pages and bytes', async () => {
  const next = { 'x-next-token': 'b' };
  const { sent, stasis } = client([json(200, {}), json(200, [session], next), json(200, [session]), json(201, {}), new Response(null, { status: 204 }), json(200, {})]);
  await stasis.call('GET', '/v1/users/{user_id}', { path: { user_id: 'a/b?c' } });
  const ids = [];
  for await (const { id } of stasis.sessions({ user_id: 'ada' })) ids.push(id);
  await stasis.importSnapshot(new Uint8Array([1, 2]), { format: 'netscape', label: undefined, save_as_default: false });
  assert.equal(await stasis.call('DELETE', '/v1/snapshots/{snapshot_id}', { path: { snapshot_id: 'x' } }), undefined);
  await stasis.archive('x', ['age1', 'age2']);
  assert.deepEqual(ids, ['a', 'a']);
  assert.deepEqual(sent.map((one) => one.url.replace('http://stasis.example/v1', '')), [
    '/users/a%2Fb%3Fc', '/sessions?user_id=ada', '/sessions?user_id=ada&start_after=b',
    '/snapshots?format=netscape&save_as_default=false', '/snapshots/x', '/snapshots/x/archive?recipient=age1&recipient=age2',
  ]);
  assert.deepEqual([...sent[3].body], [1, 2]);
});

test('a function that throws saves nothing, and one that ends the session ends it once', async () => {
  const failed = client([json(201, session), json(500, {})]);
  await assert.rejects(failed.stasis.session({ user: 'ada', save: 'filesystem' }, () => { throw new RangeError('its own'); }), RangeError);
  assert.match(failed.sent[1].url, /\?save_snapshot_mode=none$/);
  assert.deepEqual(JSON.parse(failed.sent[0].body), { user_id: 'ada', restore_default_environment_from_user_id: 'ada', if_missing: 'fresh' });
  const ended = client([json(201, session), json(200, { deleted: true })]);
  const s = await ended.stasis.session({ save: 'memory' }, async (s) => (await s.end({ save: 'memory' }), s));
  assert.throws(() => s.cdpUrl, TypeError);
});

test('settings', () => {
  process.env.STASIS_URL = 'https://s.example/';
  process.env.STASIS_API_KEY = 'k';
  assert.equal(new Stasis().url, 'https://s.example');
  delete process.env.STASIS_API_KEY;
  assert.throws(() => new Stasis(), TypeError);
});
