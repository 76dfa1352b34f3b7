// The sessions of a run: created, shared between workers, and ended.
import { createHash } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, daemon } from './api.js';

/** The folder that the processes of a run share. The global setup makes it. */
export const runFolder = () => process.env.STASIS_PLAYWRIGHT_RUN;

/**
 * The options of all sessions in the config, for the global setup.
 *
 * @type {import('./index.js').SessionOptions[]}
 */
export const configured = [];

const sharedDeadline = 120_000; // how long a worker waits for the session that another worker creates

/**
 * The body of the create.
 *
 * @param {import('./index.js').SessionOptions} o
 */
export function createBody(o) {
  const saves = saveMode(o) !== 'none';
  return {
    ...(o.user !== undefined && !o.fresh && !o.snapshot && { restore_default_environment_from_user_id: o.user }),
    ...(o.user !== undefined && { user_id: o.user }),
    ...(o.snapshot !== undefined && { restore_from_environment_id: o.snapshot }),
    ...(o.engine !== undefined && { engine: o.engine }),
    ...(o.per === 'test' && { shared_writes: 'allow' }), // no other test uses the session
    restore_tabs: false,
    read_only: !saves,
    on_timeout: 'discard',
    idle_timeout_seconds: o.per === 'run' ? 900 : 120, // a worker that was killed ends nothing
    wait_seconds: 60,
    ...o.create,
  };
}

/** What is to become the default is saved. @param {import('./index.js').SessionOptions} o */
export const saveMode = (o) => (o.save === true || o.save === undefined && o.saveAsDefault ? 'filesystem' : o.save || 'none');

/** @param {import('./index.js').SessionOptions} o */
export const restores = (o) => !o.fresh && (o.user !== undefined || o.snapshot !== undefined);

/**
 * Creates a session and records it, so that the global teardown ends it if its worker does not.
 *
 * @param {import('./index.js').SessionOptions} o
 * @returns {Promise<import('./index.js').Session>}
 */
export async function create(o) {
  let session;
  try {
    session = await (await call(o, 'POST', '/v1/sessions', createBody(o))).json();
  } catch (e) {
    if (e.code === 'no_snapshot') e.message += '; or set `login` in the config';
    throw e;
  }
  const folder = runFolder();
  if (folder) await writeFile(join(folder, `session-${session.session_id}`), daemon(o).url, { mode: 0o600 });
  return session;
}

/**
 * Ends a session, and saves it if the options say so. A session that has ended already is no error.
 * Of several workers that save a default, the one that ends last wins.
 *
 * @param {import('./index.js').SessionOptions} o
 * @param {string} id
 * @returns {Promise<any>} the answer; undefined if the session had ended already
 */
export async function end(o, id) {
  const mode = saveMode(o);
  const query = mode === 'none' ? '' : `?save_snapshot_mode=${mode}&save_as_default=${o.saveAsDefault === true}&default_conflict=overwrite`;
  let answer;
  try {
    answer = await (await call(o, 'DELETE', `/v1/sessions/${id}${query}`)).json();
  } catch (e) {
    if (mode !== 'none' || e.status !== 404 && e.status !== 409 && e.status !== 410) throw e;
  }
  const folder = runFolder();
  if (folder) await rm(join(folder, `session-${id}`), { force: true });
  return answer;
}

/**
 * The session of the whole run: the first worker creates it, the others wait for it.
 *
 * @param {import('./index.js').SessionOptions} o
 * @returns {Promise<import('./index.js').Session>}
 */
export async function shared(o) {
  const folder = runFolder();
  if (!folder) throw new Error("stasis: `per: 'run'` needs the global setup of this package; export the config that stasis() returns");
  const name = createHash('sha256').update(JSON.stringify([createBody(o), daemon(o)])).digest('hex').slice(0, 16);
  const file = join(folder, `shared-${name}.json`);
  try {
    await (await open(`${file}.lock`, 'wx')).close();
  } catch (e) {
    if (e.code !== 'EEXIST') throw e;
    return sharedByOther(file);
  }
  let result;
  try {
    result = { session: await create(o) };
  } catch (e) {
    result = { error: e.message };
  }
  await writeFile(`${file}.part`, JSON.stringify(result), { mode: 0o600 });
  await rename(`${file}.part`, file);
  if (result.error) throw new Error(result.error);
  return result.session;
}

/** @param {string} file */
async function sharedByOther(file) {
  for (const until = Date.now() + sharedDeadline; Date.now() < until; await sleep(100)) {
    let text;
    try {
      text = await readFile(file, 'utf8');
    } catch {
      continue;
    }
    const { session, error } = JSON.parse(text);
    if (error) throw new Error(error);
    return session;
  }
  throw new Error('stasis: the worker that creates the session of the run did not finish');
}

/** Makes the folder of a run. @param {string} path */
export async function beginRun(path) {
  await mkdir(path, { recursive: true, mode: 0o700 });
  process.env.STASIS_PLAYWRIGHT_RUN = path;
}

/** Ends the sessions that the workers of the run have left, without saving, and removes the run's folder. */
export async function endRun() {
  const folder = runFolder();
  if (!folder) return;
  const left = (await readdir(folder)).filter((name) => name.startsWith('session-'));
  const ends = await Promise.allSettled(left.map(async (name) => {
    const url = await readFile(join(folder, name), 'utf8');
    const options = configured.find((o) => daemon(o).url === url);
    if (options) await end({ ...options, save: 'none' }, name.slice('session-'.length));
  }));
  await rm(folder, { recursive: true, force: true });
  delete process.env.STASIS_PLAYWRIGHT_RUN;
  const failed = ends.filter((e) => e.status === 'rejected').map((e) => e.reason.message);
  if (failed.length) throw new Error(failed.join('\n'));
}

/** @type {Map<string, Promise<object>>} */
const states = new Map();

/**
 * The cookies and localStorage of the environment that sessions with these options start from, in
 * Playwright's format. Read once for each process.
 *
 * @param {import('./index.js').SessionOptions} o
 */
export async function storageState(o) {
  if (!restores(o)) throw new Error('stasis: storageState needs `user` or `snapshot`');
  const path = o.snapshot !== undefined ? `/v1/snapshots/${encodeURIComponent(o.snapshot)}/state`
    : `/v1/users/${encodeURIComponent(o.user)}/default/state`;
  const key = JSON.stringify([daemon(o), path]);
  let state = states.get(key);
  if (!state) {
    state = call(o, 'GET', `${path}?format=playwright`).then((answer) => answer.json());
    states.set(key, state);
    state.catch(() => states.delete(key));
  }
  return structuredClone(await state);
}
