// Answers one path itself, with the value that it was registered with. This distinguishes a
// worker that runs from one that is only registered.
const value = new URL(self.location).searchParams.get('v');
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (e) => e.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (e) => {
  if (new URL(e.request.url).pathname === '/from-worker') e.respondWith(new Response(value));
});
