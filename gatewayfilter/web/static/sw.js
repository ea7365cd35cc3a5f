// Service worker, so that browsers offer to install the dashboard. It caches nothing: every page comes from the filter.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
