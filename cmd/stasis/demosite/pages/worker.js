// Answers one path by itself, with the value it was registered with, so that a
// worker that is there but does not run is told from one that does.
const value = new URL(self.location).searchParams.get('v');
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (e) => e.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (e) => {
  if (new URL(e.request.url).pathname === '/from-worker') e.respondWith(new Response(value));
});
