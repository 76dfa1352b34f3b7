// The browser of a worker: a Stasis session in place of a launched Chromium.
import { mkdir } from 'node:fs/promises';
import { chromium, firefox, request, test, webkit } from '@playwright/test';
import { fetchDownloads } from './downloads.js';
import { create, end, restores, saveMode, shared, storageState } from './sessions.js';

/** The member of `use.connectOptions` with the options of a session. A symbol, so that no reporter prints the key. */
export const sessionOptions = Symbol.for('@stasisd/playwright');

/** The address in `use.connectOptions`. Nothing listens there. */
export const endpoint = 'ws://stasis.invalid/';

/**
 * Playwright Test connects to `use.connectOptions` with `browserType.connect()`, in each worker. This
 * replaces that method for our address. All other connections and launches stay Playwright's.
 */
export function install() {
  if (chromium[sessionOptions]) return;
  chromium[sessionOptions] = true;
  for (const type of [chromium, firefox, webkit]) {
    const connect = type.connect;
    type.connect = /** @type {any} */ (async (/** @type {any} */ where, /** @type {any} */ given) => {
      const options = given?.[sessionOptions];
      if (where !== endpoint || !options) return connect.call(type, where, given);
      if (type !== chromium) throw new Error(`stasis: sessions are Chromium, and this project's browser is ${type.name()}; set \`connectOptions: undefined\` in its \`use\``);
      return open(options, launchOptions(given));
    });
  }
  const newContext = request.newContext;
  request.newContext = async (given = {}) => {
    const options = projectOptions();
    if (options && restores(options) && options.requests !== 'anonymous' && !('storageState' in await combined(request, 'runBeforeCreateRequestContext', given)))
      given = { ...given, storageState: /** @type {any} */ (await storageState(options)) };
    return newContext.call(request, given);
  };
}

/** The session options of the running test's project. @returns {import('./index.js').SessionOptions | undefined} */
function projectOptions() {
  try {
    return /** @type {any} */ (test.info().project.use.connectOptions)?.[sessionOptions];
  } catch {
    return undefined; // no test runs
  }
}

/** The launch options of the config. The test runner passes them in a header. @param {any} given */
function launchOptions(given) {
  try {
    return JSON.parse(given.headers['x-playwright-launch-options']);
  } catch {
    return {};
  }
}

/**
 * What the test runner adds to the options of a new context, such as those of `test.use()`.
 *
 * @param {any} owner
 * @param {string} hook
 * @param {object} given
 */
async function combined(owner, hook, given) {
  const options = { ...given };
  const instrumentation = owner._instrumentation ?? owner._playwright?._instrumentation; // not in Playwright's API
  if (!instrumentation) throw new Error('stasis: this version of Playwright is not supported: it has no instrumentation');
  await instrumentation[hook](options);
  for (const name of Object.keys(options)) if (options[name] === undefined) delete options[name];
  return options;
}

/**
 * A session with the connections of this worker to it.
 *
 * @typedef {object} Joined
 * @property {import('./index.js').Session} session
 * @property {import('@playwright/test').Browser} browser
 * @property {Set<import('@playwright/test').TestInfo>} tests those that made contexts in it
 * @property {() => Promise<void>} end ends the session, unless other workers share it
 */

/**
 * Creates or joins a session, and connects to it.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {any} launch the launch options of the config
 * @returns {Promise<Joined>}
 */
async function join(options, launch) {
  const session = options.per === 'run' ? await shared(options) : await create(options);
  /** @type {Joined['tests']} */
  const tests = new Set();
  const finish = async () => {
    if (options.per !== 'run') await finishSession(options, session, tests);
  };
  // Traces, videos and downloads of a connection are written here, where UI mode reads traces.
  const artifactsDir = launch.tracesDir;
  try {
    if (artifactsDir) await mkdir(artifactsDir, { recursive: true });
    const kind = contextsOf(options) === 'environment' ? 'environment' : 'new';
    const browser = await chromium.connectOverCDP(`${session.cdp_url}&context=${kind}`, { artifactsDir, slowMo: launch.slowMo });
    for (const context of browser.contexts()) await hide(context);
    explainRefusals(browser);
    return { session, browser, tests, end: finish };
  } catch (e) {
    if (options.per !== 'run') await end({ ...options, save: 'none', saveAsDefault: false }, session.session_id);
    throw e;
  }
}

/**
 * Ends a session. If one of its tests failed, the session does not become the default.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {import('./index.js').Session} session
 * @param {Joined['tests']} tests
 */
async function finishSession(options, session, tests) {
  const failed = [...tests].some((test) => test.status !== test.expectedStatus && test.status !== 'skipped');
  const answer = await end(failed ? { ...options, save: saveMode(options), saveAsDefault: false } : options, session.session_id);
  if (!options.saveAsDefault || answer?.default?.moved) return;
  const why = failed ? 'a test failed in it' : answer?.default?.reason ?? 'it had ended already';
  console.warn(`stasis: session ${session.session_id} did not become the default of ${session.user_id}: ${why}` +
    (answer?.snapshot ? `; it is saved as snapshot ${answer.snapshot.id}` : ''));
}

/** What the daemon advises in a refusal, and what to set in the config of a suite. */
const advice = 'create the session with shared_writes: allow to permit it';
const suiteAdvice = "set `per: 'test'` or `create: { shared_writes: 'allow' }` in the config of Stasis to permit it";

/** @type {WeakSet<object>} */
const explained = new WeakSet();

/**
 * Gives the daemon's refusals the advice that fits a suite. The listener is called before the test runner
 * records the error.
 *
 * @param {any} browser
 */
function explainRefusals(browser) {
  const instrumentation = browser._instrumentation; // not in Playwright's API
  if (!instrumentation || explained.has(instrumentation)) return;
  explained.add(instrumentation);
  instrumentation.addListener({
    onApiCallEnd: (/** @type {{ error?: Error }} */ { error }) => {
      if (!error?.message.includes(advice)) return;
      const { message, stack } = error;
      error.message = message.replace(advice, suiteAdvice);
      error.stack = stack?.replace(advice, suiteAdvice);
    },
  });
}

/** @param {import('./index.js').SessionOptions} o */
export const contextsOf = (o) => o.contexts ?? (restores(o) ? 'environment' : 'new');

/**
 * Returns the browser of a worker.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {any} launch the launch options of the config
 */
async function open(options, launch) {
  if (launch.args?.length || launch.proxy)
    console.warn('stasis: launchOptions.args and proxy have no effect in a session; `create: { proxy: … }` sets a proxy');
  const first = await join(options, launch);
  if (launch.headless === false) console.log(`stasis: watch the browser at ${first.session.agent_url}`);
  const { browser } = first;
  const newContext = browser.newContext.bind(browser), close = browser.close.bind(browser), contexts = browser.contexts.bind(browser);
  /** @type {Set<import('@playwright/test').BrowserContext>} those of other sessions */
  const others = new Set();
  /** @type {Set<Joined>} the sessions of single tests */
  const single = new Set();
  /** @type {Promise<Joined> | undefined} an empty session */
  let empty;
  let used = false;
  const kind = contextsOf(options);

  // A context with its own storageState is a plain one, as with a launched browser. These contexts
  // have an empty session, which starts when a test needs it. In the environment's session another
  // connection would also attach to the pages of the first one, and dismiss their dialogs.
  /** @returns {Promise<Joined>} */
  const emptySession = () => (empty ??= join({ ...options, fresh: true, per: 'worker', contexts: 'new', save: 'none', saveAsDefault: false }, launch));

  browser.newContext = async (given = {}) => {
    const info = running();
    const own = kind !== 'new' && 'storageState' in await combined(browser, 'runBeforeCreateBrowserContext', given);
    if (kind === 'isolated' && !own) given = { ...given, storageState: /** @type {any} */ (await storageState(options)) };
    let from = first;
    if (kind === 'environment' && own) {
      from = await emptySession();
    } else if (options.per === 'test') {
      if (used) single.add(from = await join(options, launch));
      used = true;
    }
    const context = await (from === first ? newContext(given) : from.browser.newContext(given));
    fetchDownloads(context, options, from.session.session_id);
    if (info) {
      from.tests.add(info);
      describe(info, context, from.session);
    }
    if (from !== first) {
      others.add(context);
      context.on('close', () => others.delete(context));
    }
    if (single.has(from)) {
      const closeContext = context.close.bind(context);
      context.close = async (reason) => {
        await closeContext(reason);
        if (single.delete(from)) await leave(from);
      };
    }
    return context;
  };
  browser.contexts = () => [...contexts(), ...others];
  /** @type {Promise<void> | undefined} */
  let closed;
  browser.close = (reason) => (closed ??= (async () => {
    const left = [...single];
    const added = await empty?.catch(() => undefined);
    if (added) left.push(added);
    const ends = await Promise.allSettled([...left.map(leave), close(reason).finally(first.end)]);
    for (const e of ends) if (e.status === 'rejected') throw e.reason;
  })());
  return browser;
}

/** Closes a connection and ends its session. @param {Joined} joined */
const leave = (joined) => joined.browser.close().finally(joined.end);

/**
 * Keeps the test runner from recording the session's own tabs: it takes screenshots and traces of all
 * contexts that it knows, also of those that no test made.
 *
 * @param {any} context
 */
async function hide(context) {
  await context.tracing.stop().catch(() => {});
  chromium['_contexts']?.delete(context);
}

/** The running test. @returns {import('@playwright/test').TestInfo | undefined} */
function running() {
  try {
    return test.info();
  } catch {
    return undefined;
  }
}

/** @type {Set<string>} */
const described = new Set();

/**
 * Attaches the session and its restore report to the first test that uses the session, and to each
 * test that fails.
 *
 * @param {import('@playwright/test').TestInfo} info
 * @param {import('@playwright/test').BrowserContext} context
 * @param {import('./index.js').Session} session
 */
function describe(info, context, session) {
  const attach = () => {
    if (info.attachments.some((a) => a.name === 'stasis session')) return;
    const { session_id, user_id, engine, restored } = session;
    info.attachments.push({ name: 'stasis session', contentType: 'application/json',
      body: Buffer.from(JSON.stringify({ session_id, user_id, engine, restored }, null, 2)) });
  };
  if (!described.has(session.session_id)) {
    described.add(session.session_id);
    attach();
  }
  context.on('close', () => {
    if (info.errors.length) attach();
  });
}
