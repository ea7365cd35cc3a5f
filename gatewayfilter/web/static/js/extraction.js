// The editor of extraction rules: elements of the page are picked by click or keys, and what the rule takes is marked.
// The page is shown by elements of our own: nothing of its markup is in this document.

const stage = () => document.getElementById("stage");
let at = null;
let asked = false;

function pick(element) {
  const form = document.getElementById("rule-form");
  if (!form || !element) return;
  form.elements.picked.value = element.dataset.n;
  mark(Number(element.dataset.n));
  asked = true;
  form.requestSubmit();
}

// Marks what the rows of the rule take, and the picked element.
function mark(picked) {
  const results = document.getElementById("results");
  if (!stage() || !results) return;
  const hits = new Set(Object.values(JSON.parse(results.dataset.marks || "{}")).flat());
  const chosen = picked ?? Number(results.dataset.picked);
  for (const element of stage().querySelectorAll(".el")) {
    const number = Number(element.dataset.n);
    element.classList.toggle("el--hit", hits.has(number));
    element.classList.toggle("el--picked", number === chosen);
  }
}

function moveTo(element) {
  if (!element) return;
  at?.classList.remove("el--at");
  at = element;
  at.classList.add("el--at");
  at.scrollIntoView({ block: "nearest" });
  const text = at.textContent.trim().replace(/\s+/g, " ").slice(0, 80);
  document.getElementById("stage-at").textContent = `${at.dataset.tag} ${text}`;
}

function moved(key) {
  const all = [...stage().querySelectorAll(".el")];
  const here = at && stage().contains(at) ? at : null;
  if (!here) return all[0];
  const place = all.indexOf(here);
  if (key === "ArrowDown") return all[Math.min(place + 1, all.length - 1)];
  if (key === "ArrowUp") return all[Math.max(place - 1, 0)];
  if (key === "ArrowLeft") return here.parentElement.closest(".el");
  if (key === "ArrowRight") return here.querySelector(".el");
  if (key === "Home") return all[0];
  return all[all.length - 1];
}

document.addEventListener("click", (event) => {
  const element = event.target.closest("#stage .el");
  if (!element) return;
  moveTo(element);
  pick(element);
});

document.addEventListener("keydown", (event) => {
  if (event.target !== stage() || event.ctrlKey || event.metaKey || event.altKey) return;
  if (["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) moveTo(moved(event.key));
  else if (event.key === "Enter" || event.key === " ") pick(at ?? moved("Home"));
  else return;
  event.preventDefault();
});

// htmx passes on buttons within a form only; some of the editor's stand outside of theirs.
document.addEventListener("htmx:configRequest", (event) => {
  const button = event.detail.triggeringEvent?.submitter;
  if (event.detail.elt.id !== "rule-form" || !button?.name) return;
  event.detail.parameters[button.name] = button.value;
  asked = true;
});

// On a narrow screen the answer stands below the page: what went wrong, or the picked element with its selectors.
function reveal() {
  const panel = document.getElementById("rule-panel");
  if (!asked || !panel) return;
  asked = false;
  (panel.querySelector(":scope > .notice") ?? panel.querySelector(".extract-picked"))?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("htmx:afterSettle", (event) => {
  mark();
  if (["rule-panel", "editor"].includes(event.target.id)) reveal();
});
mark();
