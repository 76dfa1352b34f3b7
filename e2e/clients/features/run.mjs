// Tries what users of Playwright and Puppeteer do with a browser over CDP, one feature after the other.
//
// Input, as JSON on stdin: {tool, endpoint, timeout_ms, timeouts?, dir, tls, part?, also?, only?}
//   tool        "playwright" or "puppeteer"
//   endpoint    ws:// or http:// address to connect to
//   timeout_ms  for each call of a library; a feature may take a little longer
//   timeouts    names of features that end with a timeout; they get less time
//   dir         a folder for files of the client
//   tls         an https:// address with a certificate that nobody has signed
//   part        which features to try, by number: {of: 4, take: [1, 2]} tries two of every four
//   also        names of features to try besides
//   only        names of the features to try; for trying by hand
// Output, as JSON on stdout: {results: [{name, failure, ms}], error?}
//   failure  why the feature failed, "" if it works
//
// A feature is a function with a name that users would search for. It throws if the browser
// does not do what the library promises. It gets the client's tools, and these:
//   visit(markup)  opens a page with this markup; reuse(markup) shows it in a page that features share
//   html(markup)   an address that shows this markup
//   site, other, socket, proxy, tls   addresses; see site.mjs
import { text } from 'node:stream/consumers';
import { startSite } from './site.mjs';

// A library may reject a promise of a feature that has failed already.
process.on('unhandledRejection', () => {});

const input = JSON.parse(await text(process.stdin));
const timeout = input.timeout_ms;
const withMargin = (ms) => ms * 1.2; // so that a library can report what it waits for

/** within resolves as a promise does, or rejects after ms. */
function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`timed out after ${ms} ms`)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** tryFeature runs one feature, whose calls may take ms, and closes the pages and contexts that it opened. It returns why it failed. */
async function tryFeature(client, feature, site, ms) {
  const longer = withMargin(ms);
  const { tools, close, forget } = client.tools(ms);
  const given = { ...tools, ...site.addresses, dir: input.dir, tls: input.tls, timeout: ms };
  try {
    const show = (page) => async (markup) => {
      const shown = await page();
      await shown.goto(site.addresses.html(markup));
      return shown;
    };
    await within(longer, feature({ ...given, visit: show(tools.page), reuse: show(tools.reused) }));
    return '';
  } catch (err) {
    await within(longer, forget()).catch(() => {});
    return String(err?.message ?? err) || 'it failed without a message';
  } finally {
    await within(longer, close()).catch(() => {});
  }
}

/** wanted reports whether this run tries a feature. */
function wanted(i, name) {
  const { part = { of: 1, take: [0] }, also = [], only } = input;
  return only ? only.includes(name) : also.includes(name) || part.take.includes(i % part.of);
}

const output = { results: [] };
try {
  // Each tool loads only its own library, which takes most of the time of a short script.
  const { connect, features } = await import(`./${input.tool}/client.mjs`);
  const unknown = (input.also ?? []).filter((name) => !features[name]);
  if (unknown.length) throw new Error(`there is no feature ${unknown.join('; ')}`);
  const site = await startSite();
  const client = await within(withMargin(timeout), connect(input.endpoint, timeout));
  for (const [i, [name, feature]] of Object.entries(features).entries()) {
    if (!wanted(i, name)) continue;
    const began = Date.now();
    const failure = await tryFeature(client, feature, site, input.timeouts?.includes(name) ? Math.min(timeout, 15_000) : timeout);
    output.results.push({ name, failure, ms: Date.now() - began });
  }
} catch (err) {
  output.error = String(err?.stack ?? err);
}
process.stdout.write(JSON.stringify(output), () => process.exit(output.error ? 1 : 0));
