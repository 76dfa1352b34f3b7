// Serves a page that no server has, and in it a script of another site from the cache
// "opaque".
addEventListener('install', (event) => event.waitUntil(skipWaiting()));
addEventListener('fetch', (event) => {
  const { pathname } = new URL(event.request.url);
  if (pathname === '/offline/page') {
    event.respondWith(new Response(
      '<!doctype html><title>from the worker</title><script src="/offline/opaque.js"></scr' + 'ipt>',
      { headers: { 'Content-Type': 'text/html' } }));
  } else if (pathname === '/offline/opaque.js') {
    event.respondWith(caches.match('/opaque').then((cached) => cached ?? Response.error()));
  }
});
