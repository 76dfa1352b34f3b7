// Downloads arrive on the daemon's machine. The first use of a download fetches its file.
import { createWriteStream } from 'node:fs';
import { access, mkdir, rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { call } from './api.js';

/**
 * Makes the downloads of a context usable: path(), saveAs() and createReadStream() first fetch the
 * file from the session, to the place where Playwright expects it. Playwright does the rest, and
 * removes the file when the context closes.
 *
 * @param {import('@playwright/test').BrowserContext} context
 * @param {import('./index.js').SessionOptions} options
 * @param {string} session its ID
 */
export function fetchDownloads(context, options, session) {
  const watch = (/** @type {import('@playwright/test').Page} */ page) => page.on('download', (download) => {
    const path = download.path.bind(download);
    /** @type {Promise<string> | undefined} */
    let fetched;
    const file = () => (fetched ??= path().then(async (local) => {
      await fetchFile(options, session, local);
      return local;
    }));
    download.path = file;
    for (const name of /** @type {const} */ (['saveAs', 'createReadStream'])) {
      const original = download[name].bind(download);
      download[name] = /** @type {any} */ (async (/** @type {any} */ argument) => {
        await file();
        return original(argument);
      });
    }
  });
  context.pages().forEach(watch);
  context.on('page', watch);
}

/**
 * @param {import('./index.js').SessionOptions} options
 * @param {string} session
 * @param {string} local the path that ends with the download's GUID
 */
async function fetchFile(options, session, local) {
  try {
    await access(local);
    return; // another client of the same session has fetched it
  } catch { /* it is not there yet */ }
  const answer = await call(options, 'GET', `/v1/sessions/${session}/files/${encodeURIComponent(basename(local))}`);
  await mkdir(dirname(local), { recursive: true });
  await pipeline(Readable.fromWeb(/** @type {any} */ (answer.body)), createWriteStream(`${local}.part`));
  await rename(`${local}.part`, local);
}
