// Runs Playwright Test in Stasis sessions; see README.md.
import { fileURLToPath } from 'node:url';
import { contextsOf, endpoint, install, sessionOptions } from './browser.js';
import { configured, saveMode, storageState as readState } from './sessions.js';

/**
 * Returns the config with sessions of Stasis in place of launched browsers.
 *
 * @param {import('@playwright/test').PlaywrightTestConfig} config
 * @param {import('./index.js').SessionOptions} options
 * @returns {import('@playwright/test').PlaywrightTestConfig}
 */
export function stasis(config, options = {}) {
  const before = Array.isArray(config.globalSetup) ? config.globalSetup : config.globalSetup ? [config.globalSetup] : [];
  return {
    ...config, // its symbols too
    use: { ...config.use, ...session(options) },
    globalSetup: [...before, fileURLToPath(new URL('setup.js', import.meta.url))],
  };
}

/**
 * The `use` of a project, or of `test.use()`, with a session of its own.
 *
 * @param {import('./index.js').SessionOptions} options
 */
export function session(options) {
  check(options);
  install();
  configured.push(options);
  return { connectOptions: { wsEndpoint: endpoint, [sessionOptions]: options } };
}

/**
 * The cookies and localStorage of a user's default or of a snapshot, for `use.storageState`.
 *
 * @param {import('./index.js').SessionOptions} options
 */
export async function storageState(options) {
  check(options);
  return readState(options);
}

const members = {
  url: ['string'], key: ['string'], user: ['string'], snapshot: ['string'], fresh: ['boolean'], engine: ['chrome', 'shell'],
  per: ['worker', 'test', 'run'], contexts: ['environment', 'isolated', 'new'], requests: ['environment', 'anonymous'],
  save: ['boolean', 'none', 'filesystem', 'memory'], saveAsDefault: ['boolean'], create: ['object'], login: ['function'],
  loginCheck: ['object'], stateFile: ['string'],
};

/** Reports options that would have no effect. @param {any} options */
function check(options) {
  for (const [name, value] of Object.entries(options)) {
    const allowed = members[name];
    if (!allowed) throw new Error(`stasis: ${name}: no such option; the options are ${Object.keys(members).join(', ')}`);
    if (value !== undefined && !allowed.includes(typeof value) && !allowed.includes(value))
      throw new Error(`stasis: ${name}: is ${JSON.stringify(value)}; allowed is ${allowed.join(', ')}`);
  }
  if (options.login && options.user === undefined) throw new Error('stasis: login: needs `user`, whose default it saves');
  if (options.loginCheck && options.user === undefined) throw new Error('stasis: loginCheck: needs `user`, whose default it checks');
  if (options.loginCheck && options.snapshot !== undefined && !options.login)
    throw new Error('stasis: loginCheck: checks the default of the user; remove `snapshot` or `loginCheck`');
  if (options.saveAsDefault && saveMode(options) === 'none')
    throw new Error("stasis: saveAsDefault: needs a save; remove `save`, or set it to true, 'filesystem' or 'memory'");
  if (options.per === 'run' && contextsOf(options) !== 'environment')
    throw new Error("stasis: per: 'run' needs contexts: 'environment'; in other contexts, a worker would dismiss the dialogs of another worker's pages");
  if (options.stateFile && options.user === undefined && options.snapshot === undefined) throw new Error('stasis: stateFile: needs `user` or `snapshot`');
  if (options.per === 'run' && saveMode(options) !== 'none') throw new Error("stasis: save: a session with `per: 'run'` is not saved");
}
