// A session that lives on three nodes, one after the other: with curl for the API and Puppeteer for the browser.
//
// Input, lines of JSON on stdin, one for each step below, when the cluster is as the step needs it:
//   {url, key, site, user, password}  logs in
//   {}                                the session's node was killed
//   {moves}                           its node drains; moves says whether the session has left it
//   {}                                the end
// Output, a line of JSON for each step: {value: its tabs}
// A failed check is written to stderr, with exit status 1.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual, promisify } from 'node:util';
import { connect } from './puppeteer-client.mjs';
import { until } from './steps.mjs';

const patience = 60_000;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => JSON.parse((await lines.next()).value);
const done = (tabs) => console.log(JSON.stringify({ value: tabs }));
const { url, key, site, user, password } = await next();
const session = '/v1/sessions/story';

/** curl makes an API call and returns the status and the JSON. */
async function curl(method, path, body) {
  const { stdout } = await promisify(execFile)('curl', [
    '--silent', '--show-error', '--max-time', '60', '--request', method, '--header', `Authorization: Bearer ${key}`,
    ...(body ? ['--json', JSON.stringify(body)] : []), '--write-out', '\n%{http_code}', url + path,
  ]);
  const [answer, status] = stdout.split(/\n(?=\d+$)/);
  return { status: Number(status), answer: answer && JSON.parse(answer) };
}

/** must is curl, for a call that has to succeed. */
async function must(method, path, body) {
  const { status, answer } = await curl(method, path, body);
  assert.ok(status < 300, `${method} ${path}: ${status} ${JSON.stringify(answer)}`);
  return answer;
}

/** resume creates the session again, on a node that takes sessions. Until the lease of a node that was killed ends, it is refused. */
async function resume() {
  let refused;
  for (const deadline = Date.now() + patience; Date.now() < deadline;) {
    const { status, answer } = await curl('POST', '/v1/sessions', { session_id: 'story', resume: true });
    if (status < 300) return answer;
    refused = answer;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`the session is not resumed: ${JSON.stringify(refused)}`);
}

const tabs = async () => (await must('GET', `${session}/json/list`)).map((tab) => tab.url).sort();

/** sameTabs waits until the session's tabs have the addresses of before. A loading tab shows its own only after the site has answered. */
const sameTabs = () => until('the same tabs', patience, async () => isDeepStrictEqual(await tabs(), before)).catch(async () => assert.deepEqual(await tabs(), before));

/** loggedIn connects with Puppeteer and checks every tab, and that the site still knows the login. */
async function loggedIn(cdp) {
  const browser = await connect(cdp, { timeout: patience });
  const at = (url) => until(`the tab of ${url}`, patience, async () => (await browser.pages()).find((page) => page.url() === url));
  const me = await at(`${site}/me`);
  const answer = await me.reload();
  assert.equal(answer.status(), 200, 'the site asks for a login again');
  const check = await at(`${site}/check`);
  assert.equal(await check.evaluate("localStorage.getItem('node')"), 'a');
  await browser.disconnect();
}

// Log in on the first node, with two tabs, and save.
const { cdp_url: first } = await must('POST', '/v1/sessions', { session_id: 'story', user_id: 'ada' });
const browser = await connect(first, { timeout: patience });
const [page] = await browser.pages();
await page.goto(`${site}/login`);
await browser.fill(page, 'input[name=user]', user);
await browser.fill(page, 'input[name=password]', password);
await page.evaluate("document.querySelector('input[name=remember]').checked = true");
await Promise.all([page.waitForNavigation(), page.evaluate("document.querySelector('form').requestSubmit()")]);
assert.equal(page.url(), `${site}/me`);
const other = await browser.newPage();
await other.goto(`${site}/check`);
await other.evaluate("localStorage.setItem('node', 'a')");
const before = await tabs();
assert.equal(before.length, 2);
await must('POST', `${session}/snapshots`, {});
const gone = new Promise((resolve) => browser.onDisconnected(resolve));
done(before);

// The first node was killed. The session is resumed on another one.
await next();
await gone;
let resumed = await resume();
assert.equal(resumed.cdp_url, first, 'the session has another cdp_url');
await sameTabs();
await loggedIn(first);
done(before);

// The second node drains. A drain may move the session, or leave it: then it is saved and resumed.
const { moves } = await next();
if (!moves) {
  const ended = await must('DELETE', `${session}?save_snapshot_mode=filesystem`);
  assert.ok(ended.snapshot, JSON.stringify(ended));
  resumed = await resume();
} else {
  resumed = await must('GET', session);
  assert.equal(resumed.cdp_url, first, 'the session has another cdp_url');
}
await sameTabs();
await loggedIn(resumed.cdp_url);
done(before);
await next();
await must('DELETE', `${session}?save_snapshot_mode=none`);
done([]);
process.exit(0);
