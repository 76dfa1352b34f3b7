// Runs a session that survives the death of its Chrome or its daemon, with fetch for the API and Puppeteer for the browser.
//
// Input, lines of JSON on stdin: the storyInput of e2e/story_test.go; then {url} of the daemon, after Chrome or the daemon was killed.
// Output: "navigating" while the browser is in the middle of a navigation, and "done".
// A failed check is written to stderr, with exit status 1.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { connect } from './puppeteer-client.mjs';
import { pageState, runner, until } from './steps.mjs';

const patience = 120_000;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const story = JSON.parse((await lines.next()).value);
const session = `/v1/sessions/${story.session}`;
const memory = '/api/v1/public/memory/v2/session';

/** stasis makes an API call and returns its JSON. */
async function stasis(method, path, body) {
  const answer = await fetch(story.url + path, {
    method,
    headers: { Authorization: `Bearer ${story.key}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const data = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${data.code}: ${data.message}`);
  return data;
}

/** follow reads the stream of events after an ID, until it has count events or the stream ends. It returns "id type" of each. */
async function follow(after, count = Infinity) {
  const gone = new AbortController();
  const answer = await fetch(`${story.url}${session}/events`, {
    headers: { Authorization: `Bearer ${story.key}`, ...(after && { 'Last-Event-ID': after }) },
    signal: gone.signal,
  });
  assert.equal(answer.status, 200);
  const events = [];
  let rest = '';
  try {
    for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + part).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) {
        const field = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s)));
        if (field.id) events.push(`${field.id} ${JSON.parse(field.data).type}`);
      }
      if (events.length >= count) break;
    }
  } catch (err) {
    if (err.message !== 'terminated') throw err; // the daemon was killed
  }
  gone.abort();
  return events;
}

/** drive runs steps with a client and returns the last one's result. */
async function drive(client, steps) {
  const run = runner(client, patience);
  let result;
  for (const step of steps) {
    result = await run(step).catch(async (err) => {
      throw new Error(`${JSON.stringify(step)}: ${err?.message ?? err}${await pageState(run)}`);
    });
  }
  return result;
}

// If no flow is stored, Node-RED makes a new one on each load, with another fragment (#). So addresses are compared without it.
const tabs = async () => (await stasis('GET', `${session}/json/list`)).map((tab) => tab.url.split('#')[0]);
const browser = (cdp) => connect(cdp, { timeout: patience });

// Create the session and log in.
const { cdp_url: cdp } = await stasis('POST', '/v1/sessions', {
  session_id: story.session, user_id: story.user, auto_save: { interval_seconds: 5 }, restart: story.restart,
});
const stream = follow();
await until('an agent', patience, async () => (await stasis('GET', session)).has_agent);
const messages = [['USER', 'Book the second one.'], ['THOUGHT', 'Two rooms.'], ['QUESTION', 'For how many?']];
await stasis('POST', `${session}/message`, { message: messages[0][1] });
for (const [type, message] of messages.slice(1)) await stasis('POST', `${session}/message`, { type, message });
await stasis('POST', memory, {
  session_id: story.session, project_path: '/home/ada/trip', key_decisions: ['the second one'], open_tasks: ['ask'],
});
await stasis('POST', memory, { session_id: story.session, key_decisions: ['by train'], open_tasks: ['book'], event: 'checkpoint' });

let client = await browser(cdp);
for (const [i, app] of story.apps.entries()) await drive(client, [...(i ? [{ do: 'newPage' }] : []), ...app.login]);
await drive(client, [{ do: 'newPage', url: story.calm }]);
await until('a checkpoint with both logins', patience, async () => {
  const { last_snapshot_id: id } = (await stasis('GET', session)).auto_save;
  if (!id) return false;
  const { logins } = await stasis('GET', `/v1/snapshots/${id}`);
  const state = await stasis('GET', `/v1/snapshots/${id}/state`);
  if (!state.tabs.some((tab) => JSON.stringify(tab).includes(story.calm))) return false; // the checkpoint is older than the last tab, or than its page
  const names = logins.flatMap((login) => login.names);
  return names.includes('auth-tokens') && names.some((name) => name.startsWith('DW'));
});
const before = await tabs();
const disconnected = new Promise((resolve) => client.onDisconnected(resolve));
const calm = (await client.pages()).find((page) => page.url() === story.calm);
calm.goto(story.held).catch(() => {}); // it fails when the browser is killed
await fetch(story.asked);
console.log('navigating');

// Chrome or the daemon has died, and the session continues.
story.url = JSON.parse((await lines.next()).value).url;
await disconnected;
let now = cdp;
if (story.restart === 'on_crash') {
  const { status, cdp_url } = await stasis('POST', `${session}/resume`);
  assert.deepEqual([status, cdp_url], ['already_running', cdp]);
  assert.ok((await stasis('GET', session)).browser_restarted);
} else {
  await until('its end', patience, async () => (await stasis('GET', session)).ended_at);
  const { status, session_id, cdp_url } = await stasis('POST', `${session}/resume`);
  assert.deepEqual([status, session_id], ['resumed', story.session]);
  assert.notEqual(cdp_url, cdp);
  now = cdp_url;
}

// A loading tab shows its address only after the site has answered.
await until('the same tabs', patience, async () => isDeepStrictEqual(await tabs(), before)).catch(async () => assert.deepEqual(await tabs(), before));
client = await browser(now);
for (const app of story.apps) {
  const answer = await drive(client, [{ do: 'usePage', contains: app.url }, ...app.proof]);
  assert.ok(answer.includes(app.secret), `${app.url} answers ${answer.slice(0, 200)}`);
}

for (const after of messages.keys()) {
  const talk = await stasis('GET', `${session}/messages?after_id=${after}`);
  assert.deepEqual(talk.messages.map((m) => [m.id, m.type, m.content]), messages.map((m, i) => [i + 1, ...m]).slice(after));
}
assert.equal((await stasis('GET', `${session}/status`)).execution_status, 'waiting_for_input');

const { notes } = await stasis('GET', `${session}/restore-report`);
assert.equal(notes?.session_id, story.session);
const noted = [notes.data];
for (const path of [`${memory}/latest?user_id=${encodeURIComponent(story.user)}`, `${memory}/${story.session}`, `${session}/notes`]) {
  noted.push((await stasis('GET', path)).session_data);
}
for (const { project_path, key_decisions, open_tasks } of noted) {
  assert.deepEqual([project_path, key_decisions, open_tasks], ['/home/ada/trip', ['the second one', 'by train'], ['book']]);
}

const { runs } = await stasis('GET', `${session}/runs`);
assert.deepEqual(runs.map((run) => [run.status, run.cause]), [['failed', story.cause], ['running', null]]);
const history = async () => {
  const all = [];
  for (const [i, { run_id }] of runs.entries()) {
    const page = await stasis('GET', `${session}/runs/${run_id}/events?limit=1000`);
    assert.deepEqual(page.events.map((event) => event.sequence), page.events.map((_, at) => at + 1));
    all.push(page.events.map((event) => `${i + 1}-${event.sequence} ${event.type}`));
  }
  return all;
};
const has = (run, type) => run.filter((event) => event.endsWith(` ${type}`)).length;
await until('what the tabs show', patience, async () => has((await history())[1], 'navigated') >= 3);
const [first, second] = await history();
for (const type of ['started', 'client_connected', 'message', 'note', 'navigated', 'saved']) assert.ok(has(first, type), `${type} in ${first}`);
assert.ok(first.at(-1).endsWith(' ended'), first.at(-1));
for (const type of ['restored', 'client_connected']) assert.ok(has(second, type), `${type} in ${second}`);

// The stream continues where it broke off: no event is missing, and none is sent twice.
const received = await stream;
const all = [...first, ...second];
for (let more = received; more.length && received.length < all.length; received.push(...more)) {
  more = await follow(received.at(-1).split(' ')[0], all.length - received.length); // the stream ends with each run
}
assert.deepEqual(received.slice(0, all.length), all);

await client.disconnect();
await stasis('DELETE', session);
console.log('done');
process.exit(0);
