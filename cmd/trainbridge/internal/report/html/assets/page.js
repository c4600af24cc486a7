// The page: what it concludes, then a section for each kind of data that the logs have.

const kinds = { series: seriesChart, boxes: boxChart, bars: barChart, heat: heatChart, waterfall: waterfallChart };
const charts = []; // of all figures: spec, box, and once drawn how to draw again

// table is text in rows; with steps, the first column leads to the steps.
function table(spec) {
  const cell = (row, k) => (c, i) => {
    if (i || !spec.steps) return make("td", { class: spec.text[i] ? "text" : "" }, c);
    const trace = drawnOf(spec.job, spec.steps, k);
    return make("td", null, make("a", { href: stepLink(spec.job, spec.steps.xs[k]) }, c), trace ? " " : null,
      trace ? make("a", { href: "#trace=" + trace }, words.drawn) : null);
  };
  return make("div", { class: "scroll", tabindex: "0" }, make("table", null,
    make("thead", null, make("tr", null, ...spec.head.map((h, i) => make("th", { scope: "col", class: spec.text[i] ? "text" : "" }, h)))),
    make("tbody", null, ...spec.cells.map((row, k) => make("tr", isFound(spec, k) ? { class: "found" } : null, ...row.map(cell(row, k)))))));
}

// runs are rows that lead to their sections. A column's name sorts by it; once more, the other way round.
function runs(spec) {
  const rows = spec.cells.map((row, k) => make("tr", null, ...row.map((c, i) => make("td", { class: spec.text[i] ? "text" : "" },
    i ? c : make("a", { href: "#job" + k, class: data.jobs[k].severity }, c)))));
  const body = make("tbody", null, ...rows);
  const compare = (i) => (a, b) => {
    const x = spec.by[a][i], y = spec.by[b][i];
    if (spec.text[i]) return spec.cells[a][i].localeCompare(spec.cells[b][i], undefined, { numeric: true });
    return x === null || y === null ? (x === null) - (y === null) : y - x;
  };
  const heads = spec.head.map((h, i) => {
    const th = make("th", { scope: "col", class: spec.text[i] ? "text" : "" }, make("button", { onclick: () => {
      const order = rows.map((_, k) => k).sort(compare(i));
      const back = th.getAttribute("aria-sort") === "descending";
      if (back) order.reverse();
      for (const other of heads) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", back ? "ascending" : "descending");
      body.replaceChildren(...order.map((k) => rows[k]));
    } }, h));
    return th;
  });
  return make("nav", { class: "runs", "aria-label": words.jobs }, make("div", { class: "scroll", tabindex: "0" },
    make("table", null, make("thead", null, make("tr", null, ...heads)), body)), make("p", { class: "note" }, spec.note));
}

// numbers are a figure as a table, for who cannot see it or wants to copy it.
function numbers(spec, job) {
  const most = 2048;
  let head, cells;
  switch (spec.kind) {
    case "series": {
      const columns = spec.series.flatMap((s) => [[s.name, s.values, s], ...(s.low ? [[s.name + ", min", s.low, s], [s.name + ", max", s.high, s]] : [])]);
      head = [spec.x_label, ...columns.map(([name]) => name)];
      cells = spec.xs.map((x, i) => [write(x, spec.x_unit, 6), ...columns.map(([, values, s]) => write(values[i], spec.axes[s.axis || 0].unit, 6))]);
      break;
    }
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
  details.fill = () => {
    if (details.childElementCount > 1) return;
    details.append(table({ head, cells: cells.slice(0, most), text: head.map((_, i) => i === 0 && spec.kind !== "series"),
      job, steps: spec.steps ? spec : null }));
    if (cells.length > most) details.append(make("p", { class: "note" }, words.more.replace("%d", String(cells.length - most))));
  };
  details.addEventListener("toggle", () => { if (details.open) details.fill(); });
  return details;
}

function figure(spec, job, before) {
  if (spec.kind === "table") {
    return make("figure", { class: "wide" }, spec.title ? make("figcaption", null, spec.title) : null, table(spec), spec.note ? make("p", { class: "note" }, spec.note) : null);
  }
  const box = make("div", { class: "chart " + spec.kind });
  const wide = spec.kind === "waterfall" || spec.wide;
  const rows = numbers(spec, job);
  const f = make("figure", { class: wide ? "wide" : "", "data-kind": spec.kind, id: spec.trace ? "trace-" + spec.trace : null }, make("figcaption", null, spec.title), spec.note ? make("p", { class: "note" }, spec.note) : null,
    spec.trace ? make("p", { class: "note" }, make("a", { href: "#trace=" + spec.trace }, words.link), ...linksOut(spec.trace)) : null, box, rows);
  f.chart = { spec, box, job, rows, drawn: null, before: before && before.drawn && before.drawn.state ? before.drawn.state() : null };
  box.chart = f.chart;
  return f;
}

function drawn(chart) {
  if (!chart.drawn) chart.drawn = kinds[chart.spec.kind](chart.spec, chart.box, chart.before);
  return chart.drawn;
}

// Traces that are drawn, by id: evidence that names one leads there.
let shown = new Set();
const traceIn = (text) => (text.match(/trace ([0-9a-f]{32})$/) || [])[1];

// linksOut lead to a trace in other places.
function linksOut(trace) {
  return (data.links || []).flatMap((l) => [" ", make("a", { href: l.url.replace("{trace}", trace), target: "_blank", rel: "noopener noreferrer" }, l.name)]);
}

function cause(c) {
  const evidence = (c.evidence || []).map((e) => make("li", null, make("code", null, e), shown.has(traceIn(e)) ? " " : null,
    shown.has(traceIn(e)) ? make("a", { href: "#trace-" + traceIn(e) }, words.drawn) : null, ...(traceIn(e) ? linksOut(traceIn(e)) : [])));
  return make("li", null, make("p", null, c.text), c.advice ? make("p", { class: "advice" }, c.advice) : null,
    evidence.length ? make("details", null, make("summary", null, words.evidence), make("ul", null, ...evidence)) : null);
}

// What is on the page, by key. A page that gets new data changes only the elements that have others now: a reader keeps place, zoom and what is folded.
let was = new Map(), now = new Map();

const focusable = "a, button, input, summary, [tabindex]";

// leaf is the element of a key, made anew where its data are others.
function leaf(key, spec, build) {
  const text = JSON.stringify(spec) || "", old = was.get(key);
  let e = old;
  if (!old || old.made !== text) {
    e = build(old && old.chart);
    e.made = text;
    if (old) {
      const open = [...old.querySelectorAll("details")].map((d) => d.open);
      e.querySelectorAll("details").forEach((d, i) => {
        if (i >= open.length || d.open === open[i]) return;
        d.open = open[i];
        if (d.fill) d.fill();
      });
      e.scrolled = [...old.querySelectorAll(".scroll")].map((s) => [s.scrollLeft, s.scrollTop]);
      e.focused = [...old.querySelectorAll(focusable)].indexOf(document.activeElement);
    }
  }
  now.set(key, e);
  return e;
}

// branch is the element of a key around others.
function branch(key, tag, attributes, ...children) {
  const e = was.get(key) || make(tag, null);
  for (const [name, value] of Object.entries(attributes || {})) e.setAttribute(name, value);
  now.set(key, e);
  place(e, children);
  return e;
}

// place has an element hold these, and moves none that is where it belongs.
function place(parent, children) {
  const wanted = children.filter(Boolean), keep = new Set(wanted);
  for (const c of [...parent.childNodes]) if (!keep.has(c)) c.remove();
  let at = parent.firstChild;
  for (const c of wanted) {
    if (c === at) at = at.nextSibling;
    else parent.insertBefore(c, at);
  }
}

function notes(key, s) {
  return s.notes && s.notes.length ? leaf(key + "notes", s.notes, () => make("div", null, ...s.notes.map((text) => make("p", { class: "note" }, text)))) : null;
}

function section(key, s, heading, id, job) {
  const seen = {};
  return branch(key, "section", id ? { id } : null, leaf(key + "title", s.title, () => make(heading, null, s.title)), notes(key, s),
    branch(key + "figures", "div", { class: "figures" }, ...s.charts.map((spec) => {
      const name = key + spec.kind + (spec.trace || spec.title || "");
      const n = seen[name] = (seen[name] || 0) + 1;
      return leaf(name + " " + n, spec, (before) => figure(spec, job, before));
    })));
}

function job(j, n) {
  const id = "job" + n, key = "job " + j.run + " ", sections = j.sections || [];
  return branch(key, "article", { id },
    leaf(key + "name", j.name, () => make("h2", null, j.name)),
    leaf(key + "conclusion", [j.conclusion, j.severity], () => make("div", { class: "conclusion " + (j.severity || "good") }, make("p", null, j.conclusion))),
    j.states ? leaf(key + "states", j.states, (before) => figure(j.states, j.run, before)) : null,
    j.causes && j.causes.length ? leaf(key + "causes", [j.causes, [...shown]], () => make("ol", { class: "causes" }, ...j.causes.map(cause))) : null,
    j.missing && j.missing.length ? leaf(key + "missing", j.missing, () => make("div", null, make("details", { class: "missing", open: true },
      make("summary", null, words.gaps), make("ul", null, ...j.missing.map((text) => make("li", null, text)))))) : null,
    leaf(key + "contents", [id, sections.map((s) => s.title)], () => make("nav", { class: "contents", "aria-label": words.contents },
      ...sections.map((s, k) => make("a", { href: `#${id}s${k}` }, s.title)))),
    ...sections.map((s, k) => section(key + s.title + " ", s, "h3", `${id}s${k}`, j.run)));
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

// A figure is drawn when it is about to be seen, and again when its width changes.
const seen = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    seen.unobserve(e.target);
    begin(e.target.chart);
  }
}, { rootMargin: "600px" });
const sized = new ResizeObserver((entries) => {
  for (const e of entries) {
    const c = e.target.chart, width = Math.round(e.contentRect.width);
    if (c.width && Math.abs(c.width - width) > 2 && !printing) requestAnimationFrame(() => c.drawn.draw());
    c.width = width;
  }
});
function begin(chart) {
  drawn(chart);
  sized.observe(chart.box);
}

document.title = data.title;
root.lang = data.lang;
const told = make("p", { class: "told", role: "status" });
const state = make("p", { class: "state", role: "status" }); // of a page that is served
const main = make("main");
const header = make("header", null, make("h1", null, data.title), switcher);
const footer = make("footer", null, make("p", null, words.keys), make("p", null, words.made));
const holder = document.getElementById("data");

// anchor is what the reader has at the top of the window, by key, and where.
function anchor() {
  if (scrollY === 0) return null;
  for (const [key, e] of was) {
    if (e.childElementCount && e.matches("article, section, .figures")) continue; // what is in them says more
    const r = e.getBoundingClientRect();
    if (r.height && r.bottom > 0) return { key, top: r.top };
  }
  return null;
}

// render puts the data on the page, or what is new of it.
function render() {
  const at = anchor();
  now = new Map();
  shown = new Set(data.jobs.flatMap((j) => j.sections || []).flatMap((s) => s.charts).map((c) => c.trace).filter(Boolean));
  place(header, [header.firstChild, leaf("about", data.about, () => make("p", { class: "about" }, data.about)), switcher, state]);
  place(main, [...data.jobs.map(job), ...(data.after || []).map((s) => section("after " + s.title + " ", s, "h2", "", ""))]);
  place(document.body, [holder, header, told,
    data.runs ? leaf("jobs", data.runs, () => runs(data.runs)) : null, main, footer, tip]);
  const old = was;
  was = now;
  charts.splice(0, charts.length, ...[...now.values()].map((e) => e.chart).filter(Boolean));
  for (const [key, e] of old) {
    const next = now.get(key);
    if (next === e) continue;
    if (e.chart) {
      seen.unobserve(e.chart.box);
      sized.unobserve(e.chart.box);
      if (next && next.chart && e.chart.drawn) begin(next.chart);
      if (e.chart.drawn && e.chart.drawn.end) e.chart.drawn.end();
    }
    if (!next) continue;
    next.querySelectorAll(".scroll").forEach((s, i) => s.scrollTo(...(next.scrolled[i] || [0, 0])));
    if (next.focused >= 0) [...next.querySelectorAll(focusable)][next.focused]?.focus({ preventScroll: true });
  }
  const still = at && now.get(at.key);
  if (still) scrollBy({ top: still.getBoundingClientRect().top - at.top, behavior: "instant" });
  for (const c of charts) if (!c.drawn) seen.observe(c.box);
}
render();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (theme === "auto") setTheme("auto"); });
document.addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(); });

// Paper is white, as wide as A4, with all evidence and the first figures; of several runs, with their table and first causes.
let printing = false, closed = [];
addEventListener("beforeprint", () => {
  printing = true;
  root.classList.add("printing");
  root.classList.toggle("several", data.jobs.length > 1);
  closed = [...document.querySelectorAll(".causes details:not([open])")];
  for (const d of closed) d.open = true;
  for (const c of charts) drawn(c);
  setTheme("light");
});
addEventListener("afterprint", () => {
  printing = false;
  root.classList.remove("printing");
  for (const d of closed) d.open = false;
  setTheme(theme);
});
