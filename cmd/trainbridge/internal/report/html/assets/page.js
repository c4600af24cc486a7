// The page: what it concludes, then a section for each kind of data that the logs have.

const kinds = { series: seriesChart, boxes: boxChart, bars: barChart, heat: heatChart, waterfall: waterfallChart };
const charts = []; // of all figures: spec, box, and once drawn how to draw again

function table(spec) {
  return make("div", { class: "scroll", tabindex: "0" }, make("table", null,
    make("thead", null, make("tr", null, ...spec.head.map((h, i) => make("th", { scope: "col", class: spec.text[i] ? "text" : "" }, h)))),
    make("tbody", null, ...spec.cells.map((row) => make("tr", null, ...row.map((c, i) => make("td", { class: spec.text[i] ? "text" : "" }, c)))))));
}

// numbers are a figure as a table, for who cannot see it or wants to copy it.
function numbers(spec) {
  const most = 2000;
  let head, cells;
  switch (spec.kind) {
    case "series":
      head = [spec.x_label, ...spec.series.map((s) => s.name)];
      cells = spec.xs.map((x, i) => [write(x, spec.x_unit, 6), ...spec.series.map((s) => write(s.values[i], spec.axes[s.axis || 0].unit, 6))]);
      break;
    case "boxes":
      head = ["", words.values, "min", "P5", "P25", words.median, "P75", "P95", "max"];
      cells = spec.items.map((b) => [b.name, String(b.count), ...[b.min, b.p5, b.p25, b.p50, b.p75, b.p95, b.max].map((v) => write(v, spec.unit, 6))]);
      break;
    case "bars":
      head = ["", ...spec.parts.map((p) => p.name)];
      cells = spec.items.map((b) => [b.name, ...b.values.map((v) => write(v, spec.unit, 6))]);
      break;
    case "heat":
      head = ["", ...spec.columns];
      cells = spec.rows.map((r, i) => [r, ...spec.columns.map((_, k) => write(spec.values[i * spec.columns.length + k], spec.unit, 4))]);
      break;
    default: return null;
  }
  const details = make("details", { class: "numbers" }, make("summary", null, words.numbers));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(table({ head, cells: cells.slice(0, most), text: head.map((_, i) => i === 0 && spec.kind !== "series") }));
    if (cells.length > most) details.append(make("p", { class: "note" }, words.more.replace("%d", String(cells.length - most))));
  }, { once: false });
  return details;
}

function figure(spec) {
  if (spec.kind === "table") {
    return make("figure", { class: "wide" }, spec.title ? make("figcaption", null, spec.title) : null, table(spec), spec.note ? make("p", { class: "note" }, spec.note) : null);
  }
  const box = make("div", { class: "chart " + spec.kind });
  const wide = spec.kind === "waterfall" || spec.wide;
  const f = make("figure", { class: wide ? "wide" : "", "data-kind": spec.kind, id: spec.trace ? "trace-" + spec.trace : null }, make("figcaption", null, spec.title), spec.note ? make("p", { class: "note" }, spec.note) : null,
    box, numbers(spec));
  const chart = { spec, box, drawn: null };
  box.chart = chart;
  charts.push(chart);
  return f;
}

function drawn(chart) {
  if (!chart.drawn) chart.drawn = kinds[chart.spec.kind](chart.spec, chart.box);
  return chart.drawn;
}

// Traces that are drawn, by id: evidence that names one leads there.
const shown = new Set(data.jobs.flatMap((j) => j.sections || []).flatMap((s) => s.charts).map((c) => c.trace).filter(Boolean));
const traceIn = (text) => (text.match(/trace ([0-9a-f]{32})$/) || [])[1];

function cause(c) {
  const evidence = (c.evidence || []).map((e) => make("li", null, make("code", null, e), shown.has(traceIn(e)) ? " " : null,
    shown.has(traceIn(e)) ? make("a", { href: "#trace-" + traceIn(e) }, words.drawn) : null));
  return make("li", null, make("p", null, c.text), c.advice ? make("p", { class: "advice" }, c.advice) : null,
    evidence.length ? make("details", null, make("summary", null, words.evidence), make("ul", null, ...evidence)) : null);
}

function job(j, n) {
  const id = "job" + n;
  const sections = (j.sections || []).map((s, k) => make("section", { id: `${id}s${k}` }, make("h3", null, s.title),
    ...(s.notes || []).map((text) => make("p", { class: "note" }, text)), make("div", { class: "figures" }, ...s.charts.map(figure))));
  return make("article", { id }, make("h2", null, j.name),
    make("div", { class: "conclusion " + (j.severity || "good") }, make("p", null, j.conclusion)),
    j.causes && j.causes.length ? make("ol", { class: "causes" }, ...j.causes.map(cause)) : null,
    j.missing && j.missing.length ? make("details", { class: "missing", open: true }, make("summary", null, words.gaps),
      make("ul", null, ...j.missing.map((text) => make("li", null, text)))) : null,
    make("nav", { class: "contents", "aria-label": words.contents }, ...sections.map((s, k) => make("a", { href: `#${id}s${k}` }, j.sections[k].title))),
    ...sections);
}

const themes = ["auto", "light", "dark"];
let theme = "auto";
const root = document.documentElement;
function setTheme(name) {
  root.dataset.theme = name;
  for (const c of charts) if (c.drawn) c.drawn.draw();
}
const switcher = make("button", { type: "button", class: "theme", onclick: () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  switcher.textContent = words.theme + ": " + words[theme];
  setTheme(theme);
} }, words.theme + ": " + words.auto);

document.title = data.title;
root.lang = data.lang;
document.body.replaceChildren(document.getElementById("data"),
  make("header", null, make("h1", null, data.title), make("p", { class: "about" }, data.about), switcher),
  data.jobs.length > 1 ? make("nav", { class: "contents", "aria-label": words.jobs }, ...data.jobs.map((j, n) => make("a", { href: "#job" + n }, j.name))) : "",
  make("main", null, ...data.jobs.map(job), ...(data.after || []).map((s) => make("section", null, make("h2", null, s.title),
    ...(s.notes || []).map((text) => make("p", { class: "note" }, text)), make("div", { class: "figures" }, ...s.charts.map(figure))))),
  make("footer", null, make("p", null, words.keys), make("p", null, words.made)), tip);

// A figure is drawn when it is about to be seen, and again when its width changes.
const seen = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    seen.unobserve(e.target);
    drawn(e.target.chart);
    sized.observe(e.target);
  }
}, { rootMargin: "600px" });
const sized = new ResizeObserver((entries) => {
  for (const e of entries) {
    const c = e.target.chart, width = Math.round(e.contentRect.width);
    if (c.width && Math.abs(c.width - width) > 2 && !printing) requestAnimationFrame(() => c.drawn.draw());
    c.width = width;
  }
});
for (const c of charts) seen.observe(c.box);

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (theme === "auto") setTheme("auto"); });
document.addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(); });

// Paper is white, as wide as A4, and shows all figures.
let printing = false;
addEventListener("beforeprint", () => {
  printing = true;
  root.classList.add("printing");
  for (const c of charts) drawn(c);
  setTheme("light");
});
addEventListener("afterprint", () => {
  printing = false;
  root.classList.remove("printing");
  setTheme(theme);
});
