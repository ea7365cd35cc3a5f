// Tiles of a policy: typing in the search hides what does not match; a choice that was saved is what the next one is based on.

const field = document.querySelector("[data-search]");

function narrow() {
  const words = field.value.trim().toLowerCase();
  for (const tile of document.querySelectorAll("[data-services] [data-words]")) tile.hidden = !tile.dataset.words.includes(words);
  for (const kind of document.querySelectorAll("[data-services] section")) kind.hidden = !kind.querySelector("[data-words]:not([hidden])");
}

field?.addEventListener("input", narrow);

document.addEventListener("htmx:afterRequest", (event) => {
  const choice = event.target.closest(".choice-tile select");
  if (choice && event.detail.successful) choice.parentElement.querySelector("input[type=hidden]").value = choice.value;
});
