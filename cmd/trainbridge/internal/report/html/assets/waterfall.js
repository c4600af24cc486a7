// Waterfalls of traces: rows of a tree with bars on one axis, which can be searched, folded and zoomed.
// A row of the data is [depth, name, start, duration, colour, severity, details], times in ns from the trace's start.

const firstRows = 60; // a longer trace is opened with its deeper levels folded

// waterfallChart draws into an element. Before is what state() said of the waterfall that was in its place.
function waterfallChart(spec, outer, before) {
  const rows = spec.rows.map((r, i) => ({ i, depth: r[0], name: spec.names[r[1]], start: r[2], took: r[3], colour: r[4], severity: r[5], details: r[6] || "" }));
  const parents = [];
  rows.forEach((r) => {
    r.parent = r.depth > 0 ? parents[r.depth - 1] : null;
    parents[r.depth] = r;
    r.children = 0;
    if (r.parent) r.parent.children++;
  });
  let deepest = 1;
  for (let d = 2; d < 20 && rows.filter((r) => r.depth <= d).length <= firstRows; d++) deepest = d;
  rows.forEach((r) => { r.open = r.depth < deepest; });

  let from = 0, to = Math.max(1, spec.length), found = [], current = -1;
  const search = make("input", { type: "search", placeholder: words.search, "aria-label": words.search + ": " + spec.title });
  const count = make("span", { class: "count", role: "status" });
  const button = (text, label, onclick) => make("button", { type: "button", title: label, "aria-label": label, onclick }, text);
  const ruler = make("div", { class: "ruler" });
  const list = make("div", { class: "rows", role: "tree", tabindex: "0", "aria-label": spec.title + ". " + words.treeKeys });
  outer.append(
    make("div", { class: "tools" }, search, count,
      button("↑", words.previous, () => step(-1)), button("↓", words.next, () => step(1)),
      button("+", words.zoomIn, () => zoom(0.5)), button("−", words.zoomOut, () => zoom(2)), button("0", words.zoomAll, () => show(0, spec.length)),
      button(words.unfold, words.unfold, () => fold(true)), button(words.fold, words.fold, () => fold(false))),
    make("div", { class: "waterfall" }, ruler, list));

  for (const r of rows) {
    r.mark = make("span", { class: "twist" });
    r.bar = make("div", { class: "bar" + (r.severity ? " " + r.severity : "") });
    r.text = make("span", { class: "took" }, r.took > 1 ? write(r.took / 1e9, "s") : "");
    const name = make("div", { class: "label" }, r.mark, (r.severity === "bad" ? "✖ " : r.severity === "warning" ? "▲ " : ""), r.name);
    name.style.paddingLeft = 4 + r.depth * 12 + "px";
    r.row = make("div", { class: "row", role: "treeitem", "aria-level": r.depth + 1, title: r.details ? r.name + "\n" + r.details : r.name },
      name, make("div", { class: "lane" }, r.bar, r.text), make("div", { class: "details" }, r.details));
    r.row.addEventListener("click", () => { select(r); if (r.children) { r.open = !r.open; place(); } });
  }

  const visible = (r) => { for (let p = r.parent; p; p = p.parent) if (!p.open) return false; return true; };
  let drawn = [], selected = null;

  // place puts the rows that are not folded into the list.
  function place() {
    drawn = rows.filter(visible);
    for (const r of drawn) {
      r.mark.textContent = r.children ? (r.open ? "▾" : "▸") : "";
      if (r.children) r.row.setAttribute("aria-expanded", r.open);
    }
    list.replaceChildren(...drawn.map((r) => r.row));
    draw();
  }

  // draw puts the bars where they belong on the part of the time that is shown.
  function draw() {
    const whole = to - from;
    for (const r of drawn) {
      const left = (r.start - from) / whole, right = (r.start + r.took - from) / whole;
      const seen = right >= 0 && left <= 1;
      r.bar.hidden = !seen;
      r.text.hidden = !seen;
      if (!seen) continue;
      const a = Math.max(0, left), b = Math.min(1, right);
      r.bar.style.left = a * 100 + "%";
      r.bar.style.width = `max(2px, ${(b - a) * 100}%)`;
      r.bar.style.background = ofSeries(r.colour);
      if (b > 0.85) {
        r.text.style.left = "auto";
        r.text.style.right = (a > 0.2 ? (1 - a) * 100 : 0) + "%";
      } else {
        r.text.style.right = "auto";
        r.text.style.left = b * 100 + "%";
      }
      r.text.classList.toggle("over", b > 0.85 && a <= 0.2);
    }
    const ticks = [], last = list.clientWidth < 520 ? 2 : 4;
    for (let k = 0; k <= last; k++) {
      const tick = make("span", null, write((from + whole * k / last) / 1e9, "s"));
      tick.style.left = k * 100 / last + "%";
      if (k) tick.style.transform = k === last ? "translateX(-100%)" : "translateX(-50%)";
      ticks.push(tick);
    }
    ruler.replaceChildren(make("div", { class: "label" }), make("div", { class: "lane" }, ...ticks), make("div", { class: "details" }));
  }

  function show(a, b) {
    const least = Math.max(1, spec.length / 1e6);
    if (b - a < least) b = a + least;
    from = Math.max(0, a);
    to = Math.min(Math.max(1, spec.length), b);
    draw();
  }
  function zoom(factor, at) {
    const middle = at ?? (selected ? Math.min(Math.max(selected.start + selected.took / 2, from), to) : (from + to) / 2);
    show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }
  function fold(open) {
    rows.forEach((r) => { r.open = open || r.depth < 1; });
    place();
  }
  function select(r) {
    if (selected) selected.row.classList.remove("selected");
    selected = r;
    r.row.classList.add("selected");
  }
  function reveal(r) {
    for (let p = r.parent; p; p = p.parent) p.open = true;
    place();
    select(r);
    r.row.scrollIntoView({ block: "nearest" });
  }
  function step(by) {
    if (!found.length) return;
    current = (current + by + found.length) % found.length;
    reveal(found[current]);
    count.textContent = `${current + 1}/${found.length}`;
  }
  function mark() {
    const wanted = search.value.trim().toLowerCase();
    found = wanted ? rows.filter((r) => (r.name + " " + r.details).toLowerCase().includes(wanted)) : [];
    const hits = new Set(found);
    rows.forEach((r) => r.row.classList.toggle("found", hits.has(r)));
    current = -1;
    count.textContent = wanted ? `${found.length}` : "";
  }
  search.addEventListener("input", () => {
    mark();
    if (found.length) step(1);
  });
  search.addEventListener("keydown", (e) => {
    if (e.key !== "Enter") return;
    e.preventDefault();
    step(e.shiftKey ? -1 : 1);
  });
  list.addEventListener("keydown", (e) => {
    const i = selected ? drawn.indexOf(selected) : -1;
    const go = (k) => { const r = drawn[Math.max(0, Math.min(drawn.length - 1, k))]; select(r); r.row.scrollIntoView({ block: "nearest" }); };
    switch (e.key) {
      case "ArrowDown": go(i + 1); break;
      case "ArrowUp": go(i - 1); break;
      case "ArrowRight": if (selected) { selected.open = true; place(); } break;
      case "ArrowLeft": if (selected) { if (selected.open && selected.children) selected.open = false; else if (selected.parent) select(selected.parent); place(); } break;
      case "+": case "=": zoom(0.5); break;
      case "-": zoom(2); break;
      case "0": show(0, spec.length); break;
      case "Enter": if (selected) show(selected.start - selected.took * 0.05, selected.start + selected.took * 1.05); break;
      default: return;
    }
    e.preventDefault();
  });
  const lane = () => (drawn[0] ? drawn[0].bar.parentElement.getBoundingClientRect() : list.getBoundingClientRect());
  const timeAt = (x) => { const l = lane(); return from + (to - from) * Math.max(0, Math.min(1, (x - l.left) / l.width)); };
  list.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    zoom(e.deltaY < 0 ? 0.8 : 1.25, timeAt(e.clientX));
  }, { passive: false });
  let pressed = null;
  ruler.addEventListener("pointerdown", (e) => { pressed = timeAt(e.clientX); ruler.setPointerCapture(e.pointerId); });
  ruler.addEventListener("pointerup", (e) => {
    const end = timeAt(e.clientX);
    if (pressed !== null && Math.abs(end - pressed) > (to - from) / 100) show(Math.min(pressed, end), Math.max(pressed, end));
    pressed = null;
  });
  ruler.addEventListener("dblclick", () => show(0, spec.length));
  place();
  const same = before && before.names === rows.map((r) => r.name).join("\n"); // of another trace, or of more of this one, rows are others
  if (same) {
    rows.forEach((r, i) => { r.open = before.open[i]; });
    place();
    if (before.selected >= 0) select(rows[before.selected]);
    search.value = before.search;
    mark();
    current = before.current;
    if (current >= 0) count.textContent = `${current + 1}/${found.length}`;
    if (before.zoom) show(...before.zoom);
    list.scrollTop = before.scrolled;
  }
  const state = () => ({
    names: rows.map((r) => r.name).join("\n"), open: rows.map((r) => r.open), selected: rows.indexOf(selected), search: search.value, current,
    zoom: from > 0 || to < spec.length ? [from, to] : null, scrolled: list.scrollTop,
  });
  return { draw, window: () => [from, to], state };
}
