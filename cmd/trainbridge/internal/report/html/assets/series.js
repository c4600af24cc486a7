// Series over steps, time or percentiles: lines, points, averages, stacked areas, by uPlot.

const powersOfTwo = Array.from({ length: 60 }, (_, i) => 2 ** i);

const times = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000];

// chartAxis is an axis whose ticks are written with their unit.
function chartAxis(unit, side, scale, stroke) {
  return {
    scale, side, stroke: colour("text"), font: "12px system-ui, sans-serif",
    grid: { show: stroke, stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
    incrs: unit === "By" ? powersOfTwo : unit === "clock" ? times : undefined,
    values: (u, splits) => splits.map((v) => v === null ? "" : write(v, unit, 6)),
    size: (u, values) => {
      if (!values) return 50;
      const context = u.ctx;
      context.save();
      context.font = "12px system-ui, sans-serif";
      const widest = Math.max(...values.map((v) => context.measureText(v).width));
      context.restore();
      return Math.ceil(widest) + 18;
    },
  };
}

// stack adds up what is shown, the first at the bottom.
function stack(series, shown) {
  const sums = [];
  let below = null;
  for (let k = 0; k < series.length; k++) {
    const own = series[k].values;
    if (series[k].draw === "over") {
      sums.push(own);
      continue;
    }
    if (shown[k]) {
      const under = below;
      below = own.map((v, i) => (v === null ? 0 : v) + (under ? under[i] : 0));
    }
    sums.push(shown[k] ? below : own.map(() => null));
  }
  return sums;
}

// seriesChart draws into a box and returns how to draw again. Before is what state() said of the chart that was in its place.
function seriesChart(spec, box, before) {
  const shown = spec.series.map((s) => !(before && before.hidden.includes(s.name)));
  const values = spec.series.map(() => make("b", { class: "value" }));
  const legend = make("div", { class: "legend" }, ...spec.series.map((s, i) => make("button", {
    type: "button", "aria-pressed": String(shown[i]), title: words.toggle,
    onclick: (e) => {
      shown[i] = !shown[i];
      e.currentTarget.setAttribute("aria-pressed", shown[i]);
      draw();
    },
  }, make("span", { class: "swatch" + (s.draw === "points" ? " dot" : s.faint ? " thin" : ""), "data-colour": s.colour }), s.name, values[i])));
  const plot = make("div", { class: "plot", tabindex: "0", role: "img", "aria-label": spec.title + ". " + words.chartKeys });
  box.append(plot, legend);
  let u = null;
  const ranged = spec.series.filter((s) => s.low); // behind their line, from the least to the most

  const swatches = () => {
    for (const e of legend.querySelectorAll(".swatch")) e.style.background = ofSeries(+e.dataset.colour);
  };

  function rows() {
    const out = [spec.xs];
    const columns = spec.stacked ? stack(spec.series, shown) : spec.series.map((s) => s.values);
    out.push(...columns);
    for (const s of ranged) out.push(s.low, s.high);
    return out;
  }

  function draw() {
    const zoom = u ? { min: u.scales.x.min, max: u.scales.x.max } : null;
    if (u) u.destroy();
    swatches();
    const series = [{}], bands = [];
    spec.series.forEach((s, k) => {
      const stroke = ofSeries(s.colour);
      const one = {
        label: s.name, scale: "y" + (s.axis || 0), show: shown[k], stroke, width: s.draw === "average" ? 2.5 : 1.25,
        spanGaps: s.draw === "average" || s.draw === "line",
        points: { show: spec.xs.length <= 60 && s.draw !== "average", size: 5, fill: colour("page") },
      };
      if (s.draw === "points") Object.assign(one, { paths: () => null, points: { show: true, size: 7, fill: stroke, stroke } });
      if (s.draw === "steps") Object.assign(one, { paths: uPlot.paths.stepped({ align: 1 }), fill: faint(stroke, 0.18), points: { show: false } });
      if (s.faint) one.stroke = faint(stroke, 0.45);
      if (s.dash) one.dash = [6, 4];
      if (spec.stacked && s.draw !== "over") {
        one.fill = faint(stroke, 0.75);
        if (spec.xs.length > 400) one.width = 0; // else the topmost lines hide the parts
        one.points = { show: spec.xs.length === 1, size: 6, fill: stroke };
      }
      series.push(one);
    });
    if (spec.stacked) {
      let below = 0;
      spec.series.forEach((s, k) => {
        if (!shown[k] || s.draw === "over") return;
        if (below) bands.push({ series: [k + 1, below], fill: faint(ofSeries(s.colour), 0.75) });
        below = k + 1;
      });
    }
    for (const s of ranged) {
      const edge = { scale: "y" + (s.axis || 0), show: shown[spec.series.indexOf(s)], stroke: faint(ofSeries(s.colour), 0.4), width: 0.75, points: { show: false } };
      series.push(edge, { ...edge });
      bands.push({ series: [series.length - 1, series.length - 2], fill: faint(ofSeries(s.colour), 0.15) });
    }
    const scales = { x: { time: false, ...(spec.log_x ? { distr: 3, log: spec.x_unit === "By" ? 2 : 10 } : {}) } };
    spec.axes.forEach((a, k) => {
      scales["y" + k] = a.log ? { distr: 3 } : {
        range: (_, min, max) => {
          if (min === null || max === null) return [0, 1];
          const zero = spec.stacked || a.zero;
          const missing = a.wide && !zero ? 0.5 * Math.abs(max) - (max - min) : 0;
          if (missing > 0) [min, max] = [min - missing / 2, max + missing / 2];
          const room = (max - (zero ? 0 : min)) * 0.05 || Math.abs(max) * 0.05 || 1;
          return [zero ? Math.min(0, min) : min - room, max + room];
        },
      };
    });
    if (spec.xs.length === 1) scales.x.range = [spec.xs[0] - 1, spec.xs[0] + 1];
    const narrow = plot.clientWidth < 520;
    u = new uPlot({
      width: Math.max(240, plot.clientWidth), height: spec.height || (narrow ? 200 : 260), scales, series, bands, legend: { show: false },
      padding: [10, spec.axes.length > 1 ? 8 : 26, 0, 4],
      cursor: { sync: { key: spec.sync || spec.title, setSeries: false }, drag: { x: true, y: false }, points: { size: 7 } },
      axes: [
        { ...chartAxis(spec.x_unit, 2, "x", true), size: 30, label: spec.x_label, labelSize: 20, labelFont: "12px system-ui, sans-serif", space: 70,
          ...(spec.x_unit === "" ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7] } : {}) },
        ...spec.axes.map((a, k) => ({
          ...chartAxis(a.unit, k % 2 ? 1 : 3, "y" + k, k === 0), label: a.label || undefined, labelSize: a.label ? 18 : 0,
          labelFont: "12px system-ui, sans-serif",
        })),
      ],
      hooks: {
        setCursor: [(u) => {
          const i = u.cursor.idx;
          spec.series.forEach((s, k) => {
            const v = i === null || i === undefined ? null : s.values[i];
            const unit = spec.axes[s.axis || 0].unit;
            values[k].textContent = i === null || i === undefined ? "" : write(v, unit) +
              (s.low && s.low[i] !== null ? " (" + write(s.low[i], unit) + " – " + write(s.high[i], unit) + ")" : "");
          });
          at.textContent = i === null || i === undefined ? "" : spec.x_label + " " + write(spec.xs[i], spec.x_unit);
        }],
        draw: [(u) => marks(u)],
      },
    }, rows(), plot);
    if (zoom && zoom.min !== null && zoom.min !== undefined && zoomed) u.setScale("x", zoom);
  }

  const at = make("span", { class: "at" });
  legend.prepend(at);
  let zoomed = false;

  // marks are steps that a verdict is about: a line, and the same by shape for who sees no colour.
  function marks(u) {
    const context = u.ctx;
    context.save();
    for (const m of spec.marks || []) {
      const x = u.valToPos(m.x, "x", true);
      if (!(x >= u.bbox.left && x <= u.bbox.left + u.bbox.width)) continue;
      context.strokeStyle = context.fillStyle = colour(m.severity === "bad" ? "bad" : "warn");
      context.globalAlpha = 0.8;
      context.lineWidth = devicePixelRatio;
      context.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
      context.beginPath();
      context.moveTo(x, u.bbox.top);
      context.lineTo(x, u.bbox.top + u.bbox.height);
      context.stroke();
      const size = 5 * devicePixelRatio;
      context.beginPath();
      context.moveTo(x - size, u.bbox.top);
      context.lineTo(x + size, u.bbox.top);
      context.lineTo(x, u.bbox.top + 1.5 * size);
      context.fill();
    }
    context.restore();
  }

  function zoomTo(min, max) {
    const first = spec.xs[0], last = spec.xs[spec.xs.length - 1];
    zoomed = !(min <= first && max >= last);
    u.setScale("x", { min: Math.max(min, first), max: Math.min(max, last) });
  }
  function zoomBy(factor) {
    const { min, max } = u.scales.x;
    const middle = u.cursor.idx !== null && u.cursor.idx !== undefined ? spec.xs[u.cursor.idx] : (min + max) / 2;
    zoomTo(middle - (middle - min) * factor, middle + (max - middle) * factor);
  }
  plot.addEventListener("keydown", (e) => {
    const last = spec.xs.length - 1;
    let i = u.cursor.idx;
    switch (e.key) {
      case "ArrowRight": i = i === null || i === undefined ? 0 : Math.min(last, i + (e.shiftKey ? 10 : 1)); break;
      case "ArrowLeft": i = i === null || i === undefined ? last : Math.max(0, i - (e.shiftKey ? 10 : 1)); break;
      case "Home": i = 0; break;
      case "End": i = last; break;
      case "+": case "=": zoomBy(0.5); e.preventDefault(); return;
      case "-": zoomBy(2); e.preventDefault(); return;
      case "0": case "Escape": zoomTo(spec.xs[0], spec.xs[last]); return;
      default: return;
    }
    e.preventDefault();
    u.setCursor({ left: u.valToPos(spec.xs[i], "x"), top: 10 });
  });
  plot.addEventListener("mouseup", () => { zoomed = true; });
  plot.addEventListener("dblclick", () => { zoomed = false; });
  draw();
  if (before && before.zoom) zoomTo(before.zoom.min, before.zoom.max);
  const range = () => ({ min: u.scales.x.min, max: u.scales.x.max });
  const state = () => ({
    hidden: spec.series.filter((_, k) => !shown[k]).map((s) => s.name), zoom: zoomed ? range() : null,
  });
  return { draw, shown: range, zoomTo, state, end: () => u.destroy() };
}
