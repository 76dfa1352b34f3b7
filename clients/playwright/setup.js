// The global setup: makes the run's folder, and sees to the logins of the users whose projects run.
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { daemon } from './api.js';
import { sessionOptions } from './browser.js';
import { prepareLogin } from './login.js';
import { beginRun, configured, endRun, storageState } from './sessions.js';

/**
 * Returns the teardown: it ends the sessions that the workers have left.
 *
 * @param {import('@playwright/test').FullConfig} config
 */
export default async function setup(config) {
  await beginRun(join(tmpdir(), `stasis-playwright-${randomUUID()}`));
  try {
    await prepare(config);
  } catch (e) {
    await endRun();
    throw e;
  }
  return endRun;
}

/** @param {import('@playwright/test').FullConfig} config */
async function prepare(config) {
  const all = inUse(config);
  const seen = new Set();
  /** @type {Error[]} */
  const failed = [];
  // Two projects can have the same user, and one of them no `login`.
  for (const [options, use] of all.toSorted(([a], [b]) => Number(!a.login) - Number(!b.login))) {
    if (options.fresh && !options.login || options.user === undefined && options.snapshot === undefined) continue;
    const whose = JSON.stringify([daemon(options).url, options.user ?? '', options.login ? '' : options.snapshot ?? '']);
    if (seen.has(whose)) continue;
    seen.add(whose);
    await prepareLogin(options, use).catch((e) => failed.push(e));
  }
  if (failed.length) throw failed.length === 1 ? failed[0] : new Error(failed.map((e) => e.message).join('\n'));
  for (const [options] of all) if (options.stateFile) await writeState(options);
}

/**
 * The options of the sessions that this run may need, each with the `use` of a project that has it:
 * those of the selected projects and of the projects that these depend on, and those that no project
 * has, because `test.use()` may have them.
 *
 * @param {import('@playwright/test').FullConfig} config
 * @returns {[import('./index.js').SessionOptions, any][]}
 */
function inUse(config) {
  const optionsOf = (/** @type {any} */ project) => project.use.connectOptions?.[sessionOptions];
  const running = new Set(config.filteredProjects ?? config.projects);
  for (const project of running) // the set grows while it is read
    for (const other of config.projects)
      if (project.dependencies.includes(other.name) || project.teardown === other.name) running.add(other);
  /** @type {Map<import('./index.js').SessionOptions, any>} */
  const found = new Map();
  for (const project of running) if (optionsOf(project) && !found.has(optionsOf(project))) found.set(optionsOf(project), project.use);
  const [first] = running;
  const ofProjects = new Set(config.projects.map(optionsOf));
  for (const options of configured) if (!ofProjects.has(options)) found.set(options, first?.use ?? {});
  return [...found];
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
