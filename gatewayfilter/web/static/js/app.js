// What every page needs: CSRF fields of htmx requests, toasts, the drawer, the theme, keys, relative times, the grid of a week.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
const language = document.documentElement.lang || "en";
const TOAST_MS = 10000;
const UNDO_MS = 20000; // a toast that can undo is read, and then decided about
const TIMES_MS = 30000;

// htmx: each request carries the CSRF token; an answer that is an error is shown as a toast.
document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = meta("csrf");
});
document.addEventListener("htmx:responseError", (event) => notify(problemOf(event.detail.xhr)));
document.addEventListener("htmx:afterRequest", (event) => {
  const waiting = event.detail.xhr.getResponseHeader("gatewayfilter-waiting");
  if (waiting) showWaiting(JSON.parse(waiting));
});
document.addEventListener("htmx:sendError", () => notify(document.body.dataset.offline || "The filter does not answer."));
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "drawer-body") openDrawer();
  refreshTimes(event.detail.target);
});

// The sentence of an error that was answered to htmx: a fragment with role=alert.
function problemOf(xhr) {
  const found = new DOMParser().parseFromString(xhr.responseText, "text/html").querySelector("[role=alert]");
  return found?.textContent.trim() || `${xhr.status} ${xhr.statusText}`;
}

// What waits for a person, beside its entries of the rail and the bar.
function showWaiting(numbers) {
  for (const place of document.querySelectorAll("[data-count]")) {
    const number = numbers[place.dataset.count] ?? 0;
    place.textContent = number.toLocaleString(language);
    place.hidden = number === 0;
  }
}

// Toasts: they go by themselves, but not under the pointer or the focus.
const toasts = document.getElementById("toasts");

export function notify(text) {
  const toast = document.createElement("div");
  toast.className = "toast";
  const line = document.createElement("p");
  line.dir = "auto";
  line.textContent = text;
  toast.append(line);
  toasts.append(toast);
}

function expire(toast) {
  const look = () => {
    if (toast.matches(":hover, :focus-within")) setTimeout(look, 2000);
    else toast.remove();
  };
  setTimeout(look, toast.querySelector("form") ? UNDO_MS : TOAST_MS);
}

if (toasts) {
  toasts.querySelectorAll(".toast").forEach(expire);
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.addedNodes) if (node.nodeType === 1) expire(node);
    }
    while (toasts.children.length > 4) toasts.firstElementChild.remove();
  }).observe(toasts, { childList: true });
  toasts.addEventListener("submit", (event) => setTimeout(() => event.target.closest(".toast")?.remove(), 50));
}

// The drawer: a modal dialog, so that the browser keeps the focus inside and gives it back.
const drawer = document.getElementById("drawer");

// While it is open, what stands outside of it can be neither seen nor pressed: toasts, with their undo, move into it.
function openDrawer() {
  if (!drawer || drawer.open) return;
  if (toasts) drawer.append(toasts);
  drawer.showModal();
}

drawer?.addEventListener("click", (event) => {
  if (event.target === drawer) drawer.close();
});
drawer?.addEventListener("close", () => {
  if (toasts) drawer.before(toasts);
  document.getElementById("drawer-body").replaceChildren();
});

// The theme is kept in a cookie, so that the server writes it into the page.
function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme === "dark" || (root.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; Path=/; SameSite=Strict; Max-Age=31536000`;
  document.dispatchEvent(new Event("theme"));
}

const DEEDS = {
  theme: switchTheme,
  help: () => document.getElementById("help").showModal(),
  close: (button) => button.closest("dialog").close(),
  dismiss: (button) => button.closest(".toast").remove(),
  print: () => window.print(),
};

document.querySelectorAll("[data-do][hidden]").forEach((button) => {
  button.hidden = false;
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) DEEDS[button.dataset.do]?.(button);
  // One menu of a sentence is open at a time, and a tap elsewhere closes it.
  for (const menu of document.querySelectorAll("details.chip[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// Keys: "/" to the search, "?" to the help, "g" and a letter to a page, "Escape" closes menus.
const PLACES = { t: "today", l: "log", p: "people", r: "rules", s: "system", q: "requests" };
let going = 0;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") closeMenus();
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "/") focusSearch(event);
  else if (event.key === "?") DEEDS.help();
  else if (event.key === "g") going = Date.now();
  else if (PLACES[event.key] && Date.now() - going < 1500) {
    document.querySelector(`.rail__link[data-key="${PLACES[event.key]}"]`)?.click();
    going = 0;
  }
});

function closeMenus() {
  for (const menu of document.querySelectorAll("details.chip[open]")) {
    menu.open = false;
    menu.firstElementChild.focus();
  }
  if (location.hash === "#menu") location.replace("#main");
}

function focusSearch(event) {
  const field = document.querySelector("[data-search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

// Relative times grow old while the page stands open.
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
const UNITS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];

export function ago(at, now = Date.now()) {
  let value = (at - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(value) < size) return relative.format(Math.trunc(value), unit);
    value /= size;
  }
  return "";
}

function refreshTimes(root = document) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time[data-relative]")) {
    const at = Date.parse(time.dateTime);
    // What the server wrote stays for a day: beyond that its words are as good.
    if (Math.abs(now - at) < 86400000) time.textContent = ago(at, now);
  }
}

setInterval(() => {
  if (!document.hidden) refreshTimes();
}, TIMES_MS);

// The grid of a week: dragging paints the hours like the first one.
let painting = null;

document.addEventListener("pointerdown", (event) => {
  const hour = event.target.closest("[data-week] input");
  if (!hour || event.pointerType === "touch") return;
  event.preventDefault();
  painting = !hour.checked;
  paint(hour);
});
document.addEventListener("pointerover", (event) => {
  const hour = event.target.closest("[data-week] input");
  if (hour && painting !== null) paint(hour);
});
document.addEventListener("pointerup", () => {
  painting = null;
});
document.addEventListener("click", (event) => {
  // The pointer has painted it already.
  if (event.target.closest("[data-week] input") && event.detail > 0 && event.pointerType !== "touch") event.preventDefault();
});

function paint(hour) {
  if (hour.checked === painting) return;
  hour.checked = painting;
  hour.dispatchEvent(new Event("change", { bubbles: true }));
}

// The service worker tells in the installed app that the filter does not answer. In a tab the browser tells that itself, and a page
// that has a worker shows later.
if ("serviceWorker" in navigator && meta("csrf") && !matchMedia("(display-mode: browser)").matches) {
  navigator.serviceWorker.register(`/sw.js?language=${language.startsWith("zh") ? "zh" : "en"}`).catch(() => {});
}
