// Calls Playwright's MCP server (@playwright/mcp, which playwright-core contains) for the
// browser at a DevTools port, and prints what its snapshot of the page says.
//
//   mcp.mjs HTTP-ADDRESS
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from './steps.mjs';

const cli = fileURLToPath(new URL('node_modules/playwright-core/cli.js', import.meta.url));
const server = spawn(process.execPath, [cli, 'mcp', '--cdp-endpoint', process.argv[2]], { stdio: ['pipe', 'pipe', 'inherit'] });
const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const waiting = new Map();
createInterface({ input: server.stdout }).on('line', (line) => {
  const answer = JSON.parse(line);
  waiting.get(answer.id)?.(answer.result);
});
let id = 0;
const call = (method, params) => new Promise((done) => {
  waiting.set(++id, done);
  send({ id, method, params });
});

await call('initialize', { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'test', version: '1' } });
send({ method: 'notifications/initialized' });
// The page may have no document yet.
console.log(await until('a page with a title', 180_000, async () => {
  const { text } = (await call('tools/call', { name: 'browser_snapshot', arguments: {} })).content[0];
  return /Page Title: \S/.test(text) && text;
}));
server.kill();
