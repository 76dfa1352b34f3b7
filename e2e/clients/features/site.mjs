// The site that the features visit. It is also a proxy to itself, at http://behind.test/.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const kinds = { js: 'text/javascript', css: 'text/css', html: 'text/html; charset=utf-8', json: 'application/json', svg: 'image/svg+xml', pdf: 'application/pdf' };

/** files are what the site serves, by path. */
const files = {
  '/script.js': 'function used() { return 1; }\nfunction unused() { return 2; }\nused();\n',
  '/style.css': '.used { color: rgb(1, 2, 3); }\n.unused { color: red; }\n',
  '/worker.js': 'onmessage = (e) => postMessage(e.data * 2);\nself.answer = 42;\n',
  '/service.js': `self.answer = 42;
    oninstall = () => skipWaiting();
    onactivate = (e) => e.waitUntil(clients.claim());
    onfetch = (e) => { if (e.request.url.endsWith('/from-worker')) e.respondWith(new Response('from the worker')); };`,
  '/data.json': '{"from": "the site"}',
  '/image.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>',
  '/frame.html': '<title>frame</title><button onclick="document.title = \'clicked\'">In the frame</button><input>',
  '/paper.pdf': '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj trailer<</Root 1 0 R>>',
  '/next.html': '<title>next</title><p>next',
};

/** routes answer what is not a file. */
const routes = {
  // The page that the address itself contains.
  '/html': ({ url }, answer) => answer('html', `<!doctype html>${url.searchParams.get('markup')}`),
  '/redirect': (_, answer) => answer('html', '', 302, { location: '/next.html' }),
  '/silent': () => {}, // it never answers
  '/missing': (_, answer) => answer('html', '<title>missing</title>', 404),
  '/cookie': ({ url }, answer) => answer('html', '<title>cookie</title>', 200, { 'set-cookie': url.searchParams.get('set') }),
  '/no-scripts': (_, answer) => answer('html', '<title>strict</title>', 200, { 'content-security-policy': "script-src 'none'" }),
  '/echo': async ({ req }, answer) => answer('json', JSON.stringify({ method: req.method, headers: req.headers, body: await text(req) })),
  '/private': ({ req }, answer) => {
    const right = req.headers.authorization === `Basic ${btoa('ada:secret')}`;
    answer('html', right ? '<title>private</title>' : '', right ? 200 : 401, { 'www-authenticate': 'Basic realm=site' });
  },
  '/asks': (_, answer) => answer('html', '<title>who are you?</title>', 401, { 'www-authenticate': 'Basic realm=another' }),
  '/download': (_, answer) => answer('html', 'a report', 200, { 'content-disposition': 'attachment; filename=report.txt' }),
  '/endless': (_, answer, res) => {
    res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': 1 << 20, 'content-disposition': 'attachment; filename=endless.bin' });
    res.write('the first bytes');
  },
  '/counted': ({ count }, answer) => answer('json', String(count), 200, { 'cache-control': 'max-age=3600' }),
};

/** echoSocket answers a WebSocket handshake, sends back the first message, and closes. Messages have less than 126 bytes. */
function echoSocket(req, socket) {
  const accept = createHash('sha1').update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.on('error', () => {}); // the browser has gone
  socket.once('data', (frame) => {
    const length = frame[1] & 0x7f, mask = frame.subarray(2, 6);
    const message = frame.subarray(6, 6 + length).map((byte, i) => byte ^ mask[i % 4]);
    socket.write(Buffer.concat([Buffer.from([0x81, length]), message]));
  });
}

/** startSite serves the site on a free loopback port. It returns {addresses}. */
export async function startSite() {
  const counts = new Map();
  const server = createServer(async (req, res) => {
    const behind = req.url.startsWith('http://');
    const url = new URL(req.url, 'http://site.test');
    const count = (counts.get(req.url) ?? 0) + 1;
    counts.set(req.url, count);
    const answer = (kind, body, status = 200, headers = {}) => {
      res.writeHead(status, { 'content-type': kinds[kind], ...headers });
      res.end(body);
    };
    if (behind) {
      answer('html', url.host === 'behind.test' ? '<title>through the proxy</title>' : '', url.host === 'behind.test' ? 200 : 502);
    } else if (files[url.pathname]) {
      answer(url.pathname.split('.').pop(), files[url.pathname]);
    } else if (routes[url.pathname]) {
      await routes[url.pathname]({ req, url, count }, answer, res);
    } else {
      answer('html', '', 404);
    }
  });
  server.on('upgrade', echoSocket);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  const { port } = server.address();
  const site = `http://127.0.0.1:${port}`;
  return {
    addresses: {
      site, // both origins are secure contexts, and two sites
      other: `http://b.localhost:${port}`,
      socket: `ws://127.0.0.1:${port}/`,
      proxy: site,
      html: (markup, origin = site) => `${origin}/html?markup=${encodeURIComponent(markup)}`,
    },
  };
}
