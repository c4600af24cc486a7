// How numbers are written. Values are in s, By, By/s and so on, shares from 0 to 1.

const SI = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const binary = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"], [1, ""]];
const clock = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

// digits writes a number with so many significant digits, without zeros that say nothing.
function digits(v, n) {
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e15 || size < 1e-4) return v.toExponential(Math.max(0, n - 1)).replace(/\.?0+e/, "e").replace("e+", "e");
  const decimals = Math.max(0, n - 1 - Math.floor(Math.log10(size)));
  const text = v.toFixed(Math.min(decimals, 12));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text.replace(/\B(?=(\d{3})+$)/g, ",");
}

function scaled(v, units, suffix, n) {
  const size = Math.abs(v);
  for (const [unit, name] of units) {
    if (size >= unit * 0.9995) return digits(v / unit, n) + " " + name + suffix;
  }
  const [unit, name] = units[units.length - 1];
  return digits(v / unit, n) + " " + name + suffix;
}

// time is a time since the start: 90 s are 1:30.
function time(v) {
  if (v < 60) return digits(v, 3) + " s";
  const s = Math.round(v), two = (n) => String(n).padStart(2, "0");
  return s < 3600 ? Math.floor(s / 60) + ":" + two(s % 60) : Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
}

const writers = {
  "s": (v, n) => v === 0 ? "0 s" : scaled(v, clock, "", n),
  "clock": (v) => time(v),
  "By": (v, n) => scaled(v, binary, "B", n),
  "By/s": (v, n) => scaled(v, SI, "B/s", n),
  "Hz": (v, n) => scaled(v, SI, "Hz", n),
  "{flop}/s": (v, n) => scaled(v, SI, "FLOP/s", n),
  "1": (v, n) => digits(100 * v, n) + "%",
  "W": (v, n) => digits(v, n) + " W",
  "Cel": (v, n) => digits(v, n) + " °C",
  "percentile": (v, n) => "P" + digits(v, n),
  "{token}/s": (v, n) => digits(v, n) + " tokens/s",
  "{sample}/s": (v, n) => digits(v, n) + " samples/s",
};

// write is a number with its unit; null is not known.
function write(v, unit, n = 4) {
  if (v === null || v === undefined || Number.isNaN(v)) return "–";
  const writer = writers[unit];
  return writer ? writer(v, n).trim() : digits(v, n) + (unit && !unit.startsWith("{") ? " " + unit : "");
}
