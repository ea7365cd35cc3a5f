// The live log: batches of rows by server-sent events. It holds still under the pointer or the focus, and counts what waits.

const MOST_ROWS = 200;
const MOST_HELD = 5;
const box = document.querySelector("[data-live]");
const body = document.getElementById("log-rows");
const held = document.getElementById("log-held");

let waiting = [];
let count = 0;
let pinned = false;

function holds() {
  return pinned || box.matches(":hover, :focus-within") || document.getElementById("drawer")?.open;
}

function show(batch) {
  const part = document.createElement("template");
  part.innerHTML = batch.html;
  const rows = [...part.content.children];
  body.prepend(part.content);
  for (const row of rows) {
    row.classList.add("log-row--new");
    window.htmx?.process(row);
  }
  while (body.rows.length > MOST_ROWS) body.deleteRow(-1);
}

function go() {
  const batches = waiting;
  waiting = [];
  count = 0;
  held.hidden = true;
  for (const batch of batches) show(batch);
}

function take(batch) {
  count += batch.rows + batch.skipped;
  waiting.push(batch);
  if (waiting.length > MOST_HELD) waiting.shift(); // the rest is in the history
  if (!holds()) {
    go();
    return;
  }
  const words = held.querySelector("[data-live-count]");
  words.textContent = `${count.toLocaleString(document.documentElement.lang)} ${words.dataset.one}`;
  held.hidden = false;
}

function watch() {
  const source = new EventSource(box.dataset.live);
  source.addEventListener("rows", (event) => take(JSON.parse(event.data)));
  // The browser connects again by itself, but not after a refusal: then wait longer each time.
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return;
    delay = Math.min(delay * 2, 60000);
    setTimeout(watch, delay);
  });
  source.addEventListener("open", () => {
    delay = 1000;
  });
  addEventListener("pagehide", () => source.close(), { once: true });
}

let delay = 1000;
if (box) {
  watch();
  box.addEventListener("pointerleave", () => setTimeout(() => !holds() && go(), 0));
  box.addEventListener("focusout", () => setTimeout(() => !holds() && go(), 0));
  held.addEventListener("click", () => {
    pinned = false;
    go();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || event.target.closest("a, button, input, textarea, select, summary")) return;
    event.preventDefault();
    pinned = !pinned;
    if (!pinned) go();
  });
}
