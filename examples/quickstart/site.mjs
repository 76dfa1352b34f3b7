// A small site with a login form. Your own site takes its place.
import { createServer } from 'node:http';

const port = process.env.PORT ?? 8090;
const form = `<title>Log in</title>
<form method="post">
  <label>User <input name="user"></label>
  <label>Password <input name="password" type="password"></label>
  <button>Log in</button>
</form>`;

createServer((request, response) => {
  if (request.method === 'POST') {
    console.log('site: a user logged in');
    response.writeHead(303, { 'Set-Cookie': 'sid=42; HttpOnly', Location: '/' }).end();
    return;
  }
  const known = request.headers.cookie?.includes('sid=42');
  response.setHeader('Content-Type', 'text/html').end(known ? '<title>Welcome</title><h1>Hello, Ada, you are logged in</h1>' : form);
}).listen(port, '127.0.0.1', () => console.log(`site: http://127.0.0.1:${port}/`));
