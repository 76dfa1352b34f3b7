// Calls of the Stasis API.

/**
 * The daemon's address and the key. An empty variable counts as not set.
 *
 * @param {import('./index.js').SessionOptions} options
 * @returns {{ url: string, key: string }}
 */
export function daemon(options) {
  const url = options.url || process.env.STASIS_URL || 'http://127.0.0.1:8080';
  if (!/^https?:\/\/./.test(url) || !URL.canParse(url))
    throw new Error(`stasis: ${options.url ? 'url' : 'STASIS_URL'}: is "${url}"; an address begins with http:// or https://, such as http://127.0.0.1:8080`);
  const key = options.key || process.env.STASIS_API_KEY;
  if (!key) throw new Error('stasis: no API key; set STASIS_API_KEY, or `key` in the config');
  return { url: url.replace(/\/+$/, ''), key };
}

/** An answer that is an error, with the API's code. */
export class StasisError extends Error {
  /**
   * @param {string} message
   * @param {number} status
   * @param {string} code
   */
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Calls the API and returns the answer. An error status is a StasisError.
 *
 * @param {import('./index.js').SessionOptions} options
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<Response>}
 */
export async function call(options, method, path, body) {
  const { url, key } = daemon(options);
  /** @type {Record<string, string>} */
  const headers = { authorization: `Bearer ${key}` };
  if (body) headers['content-type'] = 'application/json';
  let answer;
  try {
    answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  } catch (e) {
    throw new Error(`stasis: no daemon answers at ${url} (${e.cause?.code ?? e.message}); set STASIS_URL, or \`url\` in the config`);
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let code = '', message = text;
  try {
    ({ code, message } = JSON.parse(text));
  } catch { /* the page of a proxy */ }
  throw new StasisError(`stasis: ${method} ${path}: ${answer.status} ${code}: ${message}`, answer.status, code);
}
