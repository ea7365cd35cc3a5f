// Keys of the review: j and k move in the queue, a, r and u decide, c leads to the category.

const tasks = () => [...document.querySelectorAll("a[data-review]")];

function move(step) {
  const links = tasks();
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  links[Math.min(Math.max(at + step, 0), links.length - 1)]?.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, textarea, select, dialog")) return;
  if (event.key === "j" || event.key === "k") return move(event.key === "j" ? 1 : -1);
  const target = document.querySelector(`.review__decide [data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.tagName === "BUTTON") target.click();
  else {
    target.closest("details").open = true;
    target.focus();
  }
});

document.querySelector(".queue__row[aria-current]")?.scrollIntoView({ block: "nearest" });
