// A small site with a login form. Your own site takes its place.
import { createServer } from 'node:http';

const form = `<form method="post">
  <input name="user"> <input name="password" type="password"> <button>Log in</button>
</form>`;

createServer((request, response) => {
  if (request.method === 'POST') {
    console.log('site: somebody logs in');
    response.writeHead(303, { 'Set-Cookie': 'sid=42; HttpOnly', Location: '/' }).end();
    return;
  }
  const known = request.headers.cookie?.includes('sid=42');
  response.setHeader('Content-Type', 'text/html').end(known ? '<h1>Hello, Ada, you are logged in</h1>' : form);
}).listen(process.env.PORT ?? 8090, '127.0.0.1');
