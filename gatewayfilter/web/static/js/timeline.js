// The timeline of the overview: three areas on top of each other, drawn by uPlot in the colours of the theme.

const box = document.querySelector("[data-timeline]");
const language = document.documentElement.lang || "en";
let plot = null;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function stacked(data) {
  const learned = data.blocked.map((value, at) => value + data.learned[at]);
  const all = learned.map((value, at) => value + data.allowed[at]);
  return [data.at, all, learned, data.blocked];
}

function words(seconds) {
  const time = new Date(seconds * 1000);
  return time.toLocaleString(language, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

function tell(data, at) {
  const sum = (values) => values.reduce((one, other) => one + other, 0);
  for (const place of box.querySelectorAll("[data-value]")) {
    const values = data[place.dataset.value];
    place.textContent = (at === null || at === undefined ? sum(values) : values[at]).toLocaleString(language);
  }
  box.querySelector("[data-when]").textContent = at === null || at === undefined ? "" : words(data.at[at]);
}

function ticks(values) {
  const span = values.at(-1) - values[0];
  const format = span > 3 * 86400 ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" };
  return values.map((value) => new Date(value * 1000).toLocaleString(language, format));
}

function draw() {
  const data = JSON.parse(box.dataset.timeline);
  const place = box.querySelector(".chart__plot");
  plot?.destroy();
  const steps = window.uPlot.paths.stepped({ align: 1 });
  const area = (name) => ({ stroke: colour(name), fill: colour(name), width: 1, points: { show: false }, paths: steps });
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: `12px ${colour("--font")}` };
  plot = new window.uPlot(
    {
      width: place.clientWidth,
      height: place.clientHeight,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high, 4)] } },
      series: [{}, area("--chart-allowed"), area("--chart-learned"), area("--chart-blocked")],
      axes: [
        { ...axis, size: 28, grid: { show: false }, values: (_, values) => ticks(values), space: 64 },
        { ...axis, size: 56, values: (_, values) => values.map((value) => value.toLocaleString(language, { notation: "compact" })) },
      ],
      hooks: { setCursor: [(chart) => tell(data, chart.cursor.idx)] },
    },
    stacked(data),
    place,
  );
  plot.over.addEventListener("click", () => {
    const at = plot.cursor.idx;
    if (at !== null && at !== undefined) location.href = `/log?since=${data.edges[at]}&until=${data.edges[at + 1]}`;
  });
}

if (box && window.uPlot) {
  draw();
  let width = box.clientWidth;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    const place = box.querySelector(".chart__plot");
    plot.setSize({ width: place.clientWidth, height: place.clientHeight });
  }).observe(box);
  document.addEventListener("theme", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
