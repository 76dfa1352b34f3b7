// Runs a list of steps in a browser through a client library.
//
// Input, as JSON on stdin: {endpoint, headers?, timeout_ms?, steps: [...], end?}
//   endpoint  ws:// or http:// address to connect to
//   end       "disconnect" (default) keeps the browser running, "close" closes it
// Output, as JSON on stdout: {results: [...], error?, step?}
//   one result per step that succeeded; the error and the number of the step that failed
// Exit status: 0 only if every step succeeded.
//
// Steps act on the current page: at first the browser's first page, or a new one if there is none.
//   {do: "goto", url}                        → {url, status}
//   {do: "fill" | "click", selector, value?} → null
//   {do: "press", key}                       → null
//   {do: "waitForSelector", selector}        → null
//   {do: "waitForURL", contains}             → the URL
//   {do: "waitForFunction", expression}      → its value, once true; false while it throws
//   {do: "evaluate", expression}             → its value
//   {do: "screenshot", full?}                → {size, sha256}
//   {do: "pages"}                            → [{url, title}], in the client's order
//   {do: "usePage", index | contains}        → its URL; waits until it exists
//   {do: "newPage", url?} {do: "closePage"}  → null
//   {do: "setFiles", selector, files}        → null; paths as the browser sees them
//   {do: "download", selector}               → {name, state, guid}, after a click
//   {do: "cdp", method, params?, browser?}   → the raw answer, from page or browser
// With {fails: true} a step must fail, and its result is the error's message.
import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';

/** until polls probe until its result is truthy, for at most ms. */
export async function until(what, ms, probe) {
  for (const deadline = Date.now() + ms; ;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * main runs the steps from stdin. connect(endpoint, {headers, timeout}) returns a client:
 * pages(), newPage(), status(response), download(page, click, timeout), cdp(page?),
 * disconnect(), close(), fill, setFiles, waitForFunction, screenshot.
 */
export async function main(connect) {
  const input = JSON.parse(await text(process.stdin));
  const timeout = input.timeout_ms ?? 20_000;
  const output = { results: [] };
  let client, run;
  try {
    client = await connect(input.endpoint, { headers: input.headers ?? {}, timeout });
    run = runner(client, timeout);
    for (const step of input.steps) {
      output.step = output.results.length;
      output.results.push((await outcome(run, step)) ?? null);
    }
    delete output.step;
    await (input.end === 'close' ? client.close() : client.disconnect());
  } catch (err) {
    output.error = String(err?.message ?? err) + (run ? await pageState(run) : '');
  }
  // Node exits only after the client has closed its socket. After an error the client may
  // keep it open.
  process.stdout.write(JSON.stringify(output), () => process.exit(output.error === undefined ? 0 : 1));
}

/** pageState describes the page in which a step failed, for the error message. */
export async function pageState(run) {
  const expression = `JSON.stringify({url: location.href, state: document.readyState, focus: document.activeElement?.id,
    filled: [...document.querySelectorAll('input')].map((i) => i.id + ':' + i.value.length).join(' '),
    text: document.body?.innerText.slice(0, 400)})`;
  const silence = new Promise((resolve) => setTimeout(resolve, 3_000, 'no answer in 3 s'));
  const seen = run({ do: 'evaluate', expression }).catch((err) => `cannot evaluate: ${err?.message ?? err}`);
  return `; the page: ${await Promise.race([seen, silence])}`;
}

async function outcome(run, step) {
  if (!step.fails) return run(step);
  let value;
  try {
    value = await run(step);
  } catch (err) {
    return String(err?.message ?? err);
  }
  throw new Error(`${step.do}: succeeded with ${JSON.stringify(value)}; want an error`);
}

/** runner returns a function that runs one step with a client. */
export function runner(client, timeout) {
  let current;
  const page = async () => (current ??= (await client.pages())[0] ?? (await client.newPage()));
  const actions = {
    goto: async (s) => {
      const p = await page();
      const response = await p.goto(s.url, { timeout });
      return { url: p.url(), status: response ? response.status() : null };
    },
    fill: async (s) => client.fill(await page(), s.selector, s.value),
    click: async (s) => (await page()).click(s.selector),
    press: async (s) => (await page()).keyboard.press(s.key),
    waitForSelector: async (s) => void (await (await page()).waitForSelector(s.selector, { timeout })),
    waitForURL: async (s) => {
      const p = await page();
      return until(`a URL with ${s.contains}`, timeout, () => p.url().includes(s.contains) && p.url());
    },
    // A page that still loads may have no body yet. Puppeteer never evaluates an expression again that throws.
    waitForFunction: async (s) =>
      client.waitForFunction(await page(), `(() => { try { return ${s.expression}; } catch { return false; } })()`, timeout),
    evaluate: async (s) => (await page()).evaluate(s.expression),
    screenshot: async (s) => {
      const bytes = await client.screenshot(await page(), { fullPage: Boolean(s.full) });
      return { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
    },
    pages: async () =>
      Promise.all((await client.pages()).map(async (p) => ({ url: p.url(), title: await p.title() }))),
    usePage: async (s) => {
      const wanted = (p, i) => (s.index === undefined ? p.url().includes(s.contains) : i === s.index);
      current = await until(`page ${s.index ?? s.contains}`, timeout, async () =>
        (await client.pages()).find(wanted));
      return current.url();
    },
    newPage: async (s) => {
      current = await client.newPage();
      if (s.url) await current.goto(s.url, { timeout });
    },
    closePage: async () => {
      await (await page()).close();
      current = undefined;
    },
    setFiles: async (s) => client.setFiles(await page(), s.selector, s.files),
    download: async (s) => {
      const p = await page();
      return client.download(p, () => p.click(s.selector), timeout);
    },
    cdp: async (s) => {
      const session = await client.cdp(s.browser ? undefined : await page());
      try {
        return await session.send(s.method, s.params);
      } finally {
        await session.detach().catch(() => {}); // the session may have ended with the page
      }
    },
  };
  return (step) => {
    if (!Object.hasOwn(actions, step.do)) throw new Error(`unknown step ${step.do}`);
    return actions[step.do](step);
  };
}
