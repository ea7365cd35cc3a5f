// Service worker of the installed app. It keeps nothing: every page comes from the filter. Where the filter does not answer,
// it shows that, with a link to try again.
const WORDS = {
  en: ["The filter does not answer", "Is this device in the network of the filter, and does the filter run?", "Try again"],
  zh: ["过滤器没有应答", "请确认本设备在过滤器所在的网络中，并且过滤器正在运行。", "重试"],
};

const STYLE = `body { max-width: 28rem; margin: 15vh auto 0; padding: 0 20px; font: 16px/1.5 system-ui, sans-serif }
h1 { margin: 0; font-size: 22px; line-height: 1.3 }
a { display: inline-block; padding: 8px 16px; border: 1px solid; border-radius: 8px; color: inherit; text-decoration: none }`;

// By the routes a page and its files come from the network at once: a browser that knows none waits for this worker to start.
const ROUTES = [
  { condition: { requestMode: "navigate" }, source: "race-network-and-fetch-handler" },
  { condition: { urlPattern: "/*" }, source: "network" },
];

self.addEventListener("install", (event) => {
  self.skipWaiting();
  if (event.addRoutes) event.waitUntil(event.addRoutes(ROUTES));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate" && event.request.method === "GET") event.respondWith(fetch(event.request).catch(unanswered));
});

// In the language of the dashboard, which may differ from the browser's, by the worker's address.
// The link leads to the page itself: an empty address is that of the page.
function unanswered() {
  const language = new URL(self.location.href).searchParams.get("language") === "zh" ? "zh" : "en";
  const [title, advice, again] = WORDS[language];
  const html = `<!DOCTYPE html><html lang="${language === "zh" ? "zh-Hans" : "en"}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><style>${STYLE}</style><title>GatewayFilter</title><main><h1>${title}</h1><p>${advice}</p><p><a href="">${again}</a></p></main></html>`;
  return new Response(html, { status: 503, headers: { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" } });
}
