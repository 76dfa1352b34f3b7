// The logins of users: found out before the tests run, and renewed by the config's function.
import { chromium, selectors } from '@playwright/test';
import { call } from './api.js';
import { fetchDownloads } from './downloads.js';
import { create, end } from './sessions.js';

/** How long the password field may stay after `login` has returned, in milliseconds. */
const formDeadline = 15_000;

const again = 'log in again with `stasis login`, or set `login` in the config';

/**
 * Logs in a user whose default is missing or logged out, with the function of the config. Without that
 * function, it warns of a login that has expired, and fails if the config's login check does.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {any} use the `use` of a project that has these options
 */
export async function prepareLogin(options, use) {
  const check = await loginCheck(options, use);
  if (!options.login) {
    const why = check ? await failedCheck(options) : await expired(options, use);
    if (!why) return;
    const text = `stasis: ${options.user ?? `snapshot ${options.snapshot}`} starts logged out: ${why}; ${again}`;
    if (check) throw new Error(text);
    console.warn(text);
    return;
  }
  if (await hasDefault(options)) {
    const why = check ? await failedCheck(options) : await expired({ ...options, snapshot: undefined }, use);
    if (!why) return;
    console.warn(`stasis: logging in ${options.user} again: ${why}`);
  }
  await logIn(options, use, check);
}

/** @param {import('./index.js').SessionOptions} options */
const userPath = (options) => `/v1/users/${encodeURIComponent(options.user)}`;

/**
 * Returns the user's login check, after it has set the one of the config; null if the user has none.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {any} use
 */
async function loginCheck(options, use) {
  if (options.user === undefined) return null;
  if (options.loginCheck) {
    const none = { status: null, selector: null, absent_selector: null, text: null, cookie: null };
    const url = absolute(options.loginCheck.url, use.baseURL);
    const login_check = { ...none, before_default: true, ...options.loginCheck, url };
    return (await (await call(options, 'PATCH', userPath(options), { login_check })).json()).login_check;
  }
  return options.login ? (await (await call(options, 'GET', userPath(options))).json()).login_check : null;
}

/** @param {string} url @param {string | undefined} base */
function absolute(url, base) {
  if (!URL.canParse(url ?? '', base)) throw new Error(`stasis: loginCheck.url: is ${JSON.stringify(url)}; give a full address, or set \`baseURL\``);
  return new URL(url, base).href;
}

/** @param {import('./index.js').SessionOptions} options */
async function hasDefault(options) {
  try {
    await call(options, 'GET', `${userPath(options)}/default`);
    return true;
  } catch (e) {
    if (e.status === 404 || e.code === 'no_snapshot') return false;
    throw e;
  }
}

/**
 * Makes the user's login check. Returns why it failed, or ''.
 *
 * @param {import('./index.js').SessionOptions} options
 */
async function failedCheck(options) {
  let outcome;
  try {
    outcome = await (await call(options, 'POST', `${userPath(options)}/default/check`)).json();
  } catch (e) {
    if (e.code === 'default_not_found') return 'the user has no default';
    throw e;
  }
  if (outcome.logged_in) return '';
  const failed = outcome.conditions.filter((/** @type {any} */ c) => !c.held).map((/** @type {any} */ c) => c.kind);
  return `the login check failed at ${outcome.url ?? 'its page'}: ${outcome.error ?? `${failed.join(', ')} did not hold`}`;
}

/**
 * Returns which logins of the environment have expired, as far as Stasis can see, or ''. If one of
 * the logins is of the site of `baseURL`, only that one counts.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {any} use
 */
async function expired(options, use) {
  let logins;
  try {
    const id = options.snapshot ?? (await (await call(options, 'GET', `${userPath(options)}/default`)).json()).snapshot_id;
    ({ logins } = await (await call(options, 'GET', `/v1/snapshots/${encodeURIComponent(id)}`)).json());
  } catch (e) {
    if (e.status === 403 || e.status === 404) return ''; // the create says what is wrong
    throw e;
  }
  const host = URL.canParse(use.baseURL ?? '') ? new URL(use.baseURL).hostname : '';
  const own = logins.filter((/** @type {any} */ l) => host === l.site || host.endsWith(`.${l.site}`));
  return (own.length ? own : logins).filter((/** @type {any} */ l) => l.expired)
    .map((/** @type {any} */ l) => `the login at ${l.site} expired at ${clock(l.expected_end)}`).join(', ');
}

/** @param {string} time */
const clock = (time) => new Date(time).toLocaleString('sv'); // such as 2026-11-26 12:35:00

/**
 * Logs in with the function of the config, in an empty session, and saves the session as the user's
 * default. It fails without moving the default if the login cannot be recognised: the user's login
 * check decides, and without one the password field must be gone and something like a login be saved.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {any} use
 * @param {any} check the user's login check, if there is one
 */
async function logIn(options, use, check) {
  /** @type {import('./index.js').SessionOptions} */
  const fresh = { ...options, snapshot: undefined, fresh: true, per: 'test', save: 'filesystem', saveAsDefault: Boolean(check) };
  const session = await create(fresh);
  let browser, saved;
  try {
    browser = await chromium.connectOverCDP(`${session.cdp_url}&context=environment`);
    const page = await (await contextOf(browser, fresh, use, session.session_id)).newPage();
    await options.login(page);
    if (!check) await leftForm(page);
    saved = await end(fresh, session.session_id); // the page is still open, so the save reads its storage
    if (!check && !saved.snapshot.logins.length)
      throw new Error(`no login was recognised in the browser, so snapshot ${saved.snapshot.id} did not become the default; ` +
        'wait in `login` for what only a logged-in user sees, and if the login has no known form, set `loginCheck` in the config');
    if (!check) saved = await end({ ...fresh, saveAsDefault: true }, session.session_id);
    if (!saved.default.moved) throw new Error(`it did not become the default: ${saved.default.reason}`);
    const why = check && !check.before_default ? await failedCheck(options) : '';
    if (why) throw new Error(why);
  } catch (e) {
    if (!saved) await end({ ...fresh, save: 'none', saveAsDefault: false }, session.session_id).catch(() => {}); // the global teardown ends it
    throw new Error(`stasis: the login of ${options.user} failed: ${e.message}`, { cause: e });
  } finally {
    await browser?.close();
  }
  const until = saved.snapshot.logins.map((/** @type {any} */ l) => l.expected_end && `, at ${l.site} until about ${clock(l.expected_end)}`);
  console.warn(`stasis: logged in ${options.user}; saved as version ${saved.default.version} of the default${until.filter(Boolean).join('')}`);
}

const contextOptions = ['baseURL', 'bypassCSP', 'colorScheme', 'deviceScaleFactor', 'extraHTTPHeaders', 'geolocation', 'hasTouch', 'httpCredentials',
  'ignoreHTTPSErrors', 'isMobile', 'javaScriptEnabled', 'screen', 'serviceWorkers', 'timezoneId', 'userAgent', 'viewport'];

/**
 * A context of the session with the options of a project, as the test runner gives them to tests.
 *
 * @param {import('@playwright/test').Browser} browser
 * @param {import('./index.js').SessionOptions} options
 * @param {any} use
 * @param {string} session its ID
 */
async function contextOf(browser, options, use, session) {
  if (use.testIdAttribute) selectors.setTestIdAttribute(use.testIdAttribute);
  const given = contextOptions.filter((name) => use[name] !== undefined).map((name) => [name, use[name]]);
  const context = await browser.newContext({ ...use.contextOptions, locale: use.locale ?? 'en-US', ...Object.fromEntries(given), storageState: undefined });
  if (use.actionTimeout) context.setDefaultTimeout(use.actionTimeout);
  if (use.navigationTimeout) context.setDefaultNavigationTimeout(use.navigationTimeout);
  fetchDownloads(context, options, session);
  return context;
}

/** Fails if the page keeps a password field. @param {import('@playwright/test').Page} page */
async function leftForm(page) {
  if (page.isClosed()) return;
  try {
    await page.locator('input[type=password]').filter({ visible: true }).first().waitFor({ state: 'hidden', timeout: formDeadline });
  } catch {
    throw new Error(`${page.url()} still shows a password field, so the site has not accepted the login, or \`login\` returns too early; ` +
      'if it shows one to users who are logged in, set `loginCheck` in the config');
  }
}
