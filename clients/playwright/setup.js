// The global setup: makes the run's folder, and logs in users who have no default yet.
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { chromium } from '@playwright/test';
import { call } from './api.js';
import { fetchDownloads } from './downloads.js';
import { beginRun, configured, create, end, endRun, storageState } from './sessions.js';

/** Returns the teardown: it ends the sessions that the workers have left. */
export default async function setup() {
  await beginRun(join(tmpdir(), `stasis-playwright-${randomUUID()}`));
  try {
    await prepare();
  } catch (e) {
    await endRun();
    throw e;
  }
  return endRun;
}

async function prepare() {
  const seen = new Set();
  for (const options of configured) {
    if (!options.login || seen.has(options.user)) continue;
    seen.add(options.user);
    if (await loggedOut(options)) await logIn(options);
  }
  for (const options of configured) if (options.stateFile) await writeState(options);
}

/**
 * Reports whether the user has no default, or one that the user's login check finds logged out.
 *
 * @param {import('./index.js').SessionOptions} options
 */
async function loggedOut(options) {
  const path = `/v1/users/${encodeURIComponent(options.user)}/default`;
  try {
    await call(options, 'GET', path);
  } catch (e) {
    if (e.status === 404 || e.code === 'no_snapshot') return true;
    throw e;
  }
  try {
    return !(await (await call(options, 'POST', `${path}/check`)).json()).logged_in;
  } catch (e) {
    if (e.code === 'no_login_check') return false;
    throw e;
  }
}

/**
 * Logs in with the function of the config, and saves the session as the user's default.
 *
 * @param {import('./index.js').SessionOptions} options
 */
async function logIn(options) {
  const fresh = { ...options, fresh: true, per: /** @type {const} */ ('worker'), save: /** @type {const} */ ('filesystem'), saveAsDefault: true };
  const session = await create(fresh);
  try {
    const browser = await chromium.connectOverCDP(session.cdp_url);
    const [context] = browser.contexts();
    fetchDownloads(context, fresh, session.session_id);
    await options.login(context.pages()[0] ?? await context.newPage());
    await browser.close();
  } catch (e) {
    await end({ ...fresh, save: 'none' }, session.session_id);
    throw new Error(`stasis: the login of ${options.user} failed: ${e.message}`, { cause: e });
  }
  await end(fresh, session.session_id);
}

/**
 * Writes the file that the suite names as storageState.
 *
 * @param {import('./index.js').SessionOptions} options
 */
async function writeState(options) {
  await mkdir(dirname(options.stateFile), { recursive: true });
  await writeFile(options.stateFile, JSON.stringify(await storageState(options), null, 2), { mode: 0o600 });
}
