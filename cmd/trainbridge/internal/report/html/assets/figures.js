// Box plots, bars and heat maps, on SVG and canvas of our own.

const rowHeight = 26;

// axisOf is a scale from values to pixels, with round ticks: linear from 0, or from near the lowest value where all lie close together, or logarithmic where the
// values span decades.
function axisOf(low, high, width, log) {
  if (log) {
    const from = Math.floor(Math.log10(low)), to = Math.max(from + 1, Math.ceil(Math.log10(high)));
    const ticks = [];
    const every = Math.ceil((to - from) / Math.max(2, Math.floor(width / 90)));
    for (let e = from; e <= to; e += every) ticks.push(10 ** e);
    return { at: (v) => (Math.log10(Math.max(v, 10 ** from)) - from) / (to - from) * width, ticks };
  }
  const most = high || 1, close = low > 0.6 * high && low < high;
  const rough = (close ? (high - low) * 1.2 : most) / Math.max(2, Math.floor(width / 110));
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * decade).find((n) => n >= rough);
  const first = close ? Math.floor((low - (high - low) * 0.1) / step) * step : 0;
  const ticks = [];
  for (let v = first; v <= most + step / 1000; v += step) ticks.push(v);
  return { at: (v) => (v - first) / (most - first) * width, ticks };
}

// frame is an SVG with names at the left and an axis below.
function frame(spec, box, axis, names, inner) {
  const height = spec.items.length * rowHeight + 26;
  const svg = shape("svg", { class: "figure", width: names + inner + 70, height, role: "img", "aria-label": spec.title });
  for (const v of axis.ticks) {
    const x = names + axis.at(v);
    svg.append(shape("line", { x1: x, x2: x, y1: 0, y2: height - 22, class: "grid" }),
      shape("text", { x, y: height - 6, class: "tick", "text-anchor": "middle" }, write(v, spec.unit)));
  }
  spec.items.forEach((item, i) => {
    const name = shape("text", { x: names - 8, y: i * rowHeight + 17, class: "name", "text-anchor": "end" }, cut(item.name, Math.floor(names / 6.6)));
    name.append(shape("title", {}, item.name));
    svg.append(name);
  });
  box.replaceChildren(svg);
  return svg;
}

function widths(spec, box) {
  const all = Math.max(300, box.clientWidth);
  const longest = Math.max(...spec.items.map((item) => item.name.length));
  const names = Math.min(Math.max(60, longest * 7 + 12), all * 0.35);
  return [names, all - names - 70];
}

// boxChart draws quartiles as a box, P5 to P95 as whiskers, the extremes as dots.
function boxChart(spec, outer) {
  const box = make("div", { class: "svg" });
  outer.append(box);
  function draw() {
    const [names, inner] = widths(spec, box);
    const high = Math.max(...spec.items.map((b) => b.max)), low = Math.min(...spec.items.map((b) => b.min));
    // Values of 0 have no place on a logarithmic axis: they are drawn at its left end.
    const positive = Math.min(...spec.items.flatMap((b) => [b.min, b.p5, b.p25, b.p50, b.max]).filter((v) => v > 0));
    const log = low >= 0 && high / positive > 50;
    const axis = axisOf(log ? positive : low, high, inner, log);
    const svg = frame(spec, box, axis, names, inner);
    spec.items.forEach((b, i) => {
      const y = i * rowHeight + 13;
      const x = (v) => names + axis.at(v);
      const g = shape("g", { class: "box", stroke: ofSeries(b.colour || 0), fill: ofSeries(b.colour || 0) });
      g.append(shape("title", {}, `${b.name}: ${words.median} ${write(b.p50, spec.unit)}, P5 ${write(b.p5, spec.unit)}, P95 ${write(b.p95, spec.unit)}, ` +
        `${words.from} ${write(b.min, spec.unit)} ${words.to} ${write(b.max, spec.unit)}, ${b.count} ${words.values}`));
      g.append(shape("line", { x1: x(b.p5), x2: x(b.p95), y1: y, y2: y }));
      for (const v of [b.p5, b.p95]) g.append(shape("line", { x1: x(v), x2: x(v), y1: y - 4, y2: y + 4 }));
      g.append(shape("rect", { x: x(b.p25), y: y - 7, width: Math.max(1.5, x(b.p75) - x(b.p25)), height: 14, class: "quartiles" }));
      g.append(shape("line", { x1: x(b.p50), x2: x(b.p50), y1: y - 7, y2: y + 7, class: "median" }));
      for (const v of [b.min, b.max]) g.append(shape("circle", { cx: x(v), cy: y, r: 2 }));
      svg.append(g, shape("text", { x: names + inner + 8, y: y + 4, class: "tick" }, write(b.p50, spec.unit, 3)));
    });
  }
  draw();
  return { draw };
}

// barChart draws parts beside each other, as shares of the whole or as they are.
function barChart(spec, outer) {
  const legend = make("div", { class: "legend" }, ...spec.parts.map((part, i) => make("span", { class: "key" },
    make("span", { class: "swatch", "data-colour": part.colour }), part.name)));
  const box = make("div", { class: "svg" });
  outer.append(box, legend);
  function draw() {
    for (const e of legend.querySelectorAll(".swatch")) e.style.background = ofSeries(+e.dataset.colour);
    const [names, inner] = widths(spec, box);
    const whole = (item) => item.values.reduce((a, v) => a + (v || 0), 0);
    const axis = axisOf(0, Math.max(...spec.items.map(whole)), inner, false);
    const svg = frame(spec, box, axis, names, inner);
    spec.items.forEach((item, i) => {
      let sum = 0;
      item.values.forEach((v, k) => {
        if (!v) return;
        const x = names + axis.at(sum), width = Math.max(0.5, axis.at(sum + v) - axis.at(sum));
        const rect = shape("rect", { x, y: i * rowHeight + 4, width, height: 18, fill: ofSeries(spec.parts[k].colour), class: "part" });
        rect.append(shape("title", {}, `${item.name}, ${spec.parts[k].name}: ${write(v, spec.unit)} (${write(v / whole(item), "1", 3)})`));
        svg.append(rect);
        const text = write(v / whole(item), "1", 2);
        if (width > 44) svg.append(shape("text", { x: x + width / 2, y: i * rowHeight + 17, class: "inside", "text-anchor": "middle" }, text));
        sum += v;
      });
      svg.append(shape("text", { x: names + axis.at(sum) + 6, y: i * rowHeight + 17, class: "tick" }, write(sum, spec.unit, 3)));
    });
  }
  draw();
  return { draw };
}

// Cividis, which looks the same to people with and without colour blindness and in grey.
const ramp = [[0, 32, 76], [0, 42, 102], [37, 62, 109], [73, 82, 108], [102, 103, 112], [124, 123, 120], [148, 143, 120], [174, 165, 113], [201, 188, 99],
  [231, 212, 75], [255, 233, 69]];
function heatColour(share) {
  const at = Math.max(0, Math.min(1, share)) * (ramp.length - 1);
  const i = Math.min(ramp.length - 2, Math.floor(at));
  const c = ramp[i].map((v, k) => Math.round(v + (ramp[i + 1][k] - v) * (at - i)));
  return c;
}

// heatChart draws a table of numbers as colours. Cells without a number stay empty.
function heatChart(spec, outer) {
  const known = spec.values.filter((v) => v !== null);
  const low = spec.from_zero ? 0 : known.reduce((a, v) => Math.min(a, v), Infinity), high = known.reduce((a, v) => Math.max(a, v), -Infinity);
  const share = (v) => high > low ? (v - low) / (high - low) : 1;
  const rows = spec.rows.length, columns = spec.columns.length;
  const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": spec.title + ". " + words.heatKeys });
  const scale = make("div", { class: "ramp" }, make("span", null, write(low, spec.unit, 3)), make("canvas", { width: 160, height: 12, "aria-hidden": "true" }),
    make("span", null, write(high, spec.unit, 3)), make("span", { class: "note" }, spec.value_label || ""));
  const box = make("div", { class: "heat" }, canvas);
  outer.append(box, scale);
  let left = 60, cell = 10, tall = 10, focus = null;

  function draw() {
    const width = Math.max(280, box.clientWidth);
    const dpr = devicePixelRatio || 1;
    const context = canvas.getContext("2d");
    const longest = Math.max(...spec.rows.map((r) => Math.min(r.length, 24)));
    left = Math.max(40, longest * 6.6 + 26);
    cell = Math.min(spec.square ? 44 : 60, (width - left - 10) / columns);
    tall = spec.square ? Math.max(3, cell) : Math.max(3, Math.min(22, 480 / rows));
    const bottom = 40;
    const drawnWidth = Math.ceil(left + cell * columns + 10), height = Math.ceil(tall * rows + bottom);
    canvas.width = drawnWidth * dpr;
    canvas.height = height * dpr;
    canvas.style.width = drawnWidth + "px";
    canvas.style.height = height + "px";
    context.scale(dpr, dpr);
    context.font = "11px system-ui, sans-serif";
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const v = spec.values[r * columns + c];
        if (v === null) continue;
        const rgb = heatColour(share(v));
        context.fillStyle = `rgb(${rgb})`;
        context.fillRect(left + c * cell, r * tall, Math.max(cell - (cell > 6 ? 1 : 0), 0.5), tall - (tall > 6 ? 1 : 0));
        if (spec.square && cell >= 40 && tall >= 16) {
          context.fillStyle = rgb[0] + rgb[1] + rgb[2] > 380 ? "#000" : "#fff";
          context.textAlign = "center";
          context.fillText(write(v, spec.unit, 3).replace(/ .*/, ""), left + (c + 0.5) * cell, r * tall + tall / 2 + 4);
        }
      }
    }
    context.fillStyle = colour("text");
    context.textAlign = "right";
    const everyRow = Math.ceil(13 / tall);
    for (let r = 0; r < rows; r += everyRow) context.fillText(cut(spec.rows[r], 24), left - 6, r * tall + tall / 2 + 4);
    context.textAlign = "center";
    const widest = Math.max(...spec.columns.map((c) => context.measureText(c).width)) + 12;
    const everyColumn = Math.ceil(widest / cell);
    for (let c = 0; c < columns; c += everyColumn) context.fillText(spec.columns[c], left + (c + 0.5) * cell, rows * tall + 14);
    context.fillText(spec.column_label, left + cell * columns / 2, rows * tall + 32);
    context.save();
    context.translate(10, rows * tall / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(spec.row_label, 0, 2);
    context.restore();
    if (focus) {
      context.strokeStyle = colour("focus");
      context.lineWidth = 2;
      context.strokeRect(left + focus.c * cell, focus.r * tall, cell, tall);
    }
    const legend = scale.querySelector("canvas").getContext("2d");
    for (let x = 0; x < 160; x++) {
      legend.fillStyle = `rgb(${heatColour(x / 159)})`;
      legend.fillRect(x, 0, 1, 12);
    }
  }

  function tell(r, c) {
    const rect = canvas.getBoundingClientRect();
    const v = spec.values[r * columns + c];
    showTip(rect.left + left + c * cell, rect.top + r * tall, [`${spec.row_label} ${spec.rows[r]}, ${spec.column_label} ${spec.columns[c]}`, write(v, spec.unit)]);
  }
  canvas.addEventListener("mousemove", (e) => {
    const c = Math.floor((e.offsetX - left) / cell), r = Math.floor(e.offsetY / tall);
    if (c >= 0 && c < columns && r >= 0 && r < rows) tell(r, c);
    else hideTip();
  });
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("blur", () => { focus = null; hideTip(); draw(); });
  canvas.addEventListener("keydown", (e) => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!moves[e.key]) return;
    e.preventDefault();
    focus = focus || { r: 0, c: -1 };
    focus = { r: Math.max(0, Math.min(rows - 1, focus.r + moves[e.key][0])), c: Math.max(0, Math.min(columns - 1, focus.c + moves[e.key][1])) };
    draw();
    tell(focus.r, focus.c);
  });
  draw();
  return { draw };
}
