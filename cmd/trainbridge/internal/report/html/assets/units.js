// How numbers are written, as internal/human does it: a test holds the two against each other. Values are in s, By, By/s and so on, shares from 0 to 1.

const SI = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const binary = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"], [1, ""]];
const clock = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const unknown = "-";

// digits writes a number with so many significant digits, without zeros that say nothing; whole numbers have their digits in groups, and all of them.
function digits(v, n) {
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e15 || size < 1e-4) {
    return v.toExponential(n - 1).replace(/(\.\d*?)0+e/, "$1e").replace(".e", "e").replace(/e([+-])(\d)$/, "e$10$2");
  }
  const decimals = Math.max(0, n - 1 - Math.floor(Math.log10(size)));
  const text = trimmed(rounded(v, decimals));
  return text.includes(".") ? text : text.replace(/\B(?=(\d{3})+$)/g, ",");
}

const trimmed = (text) => text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

// share has one decimal, unless more is asked for.
function share(v, n) {
  const size = Math.abs(100 * v);
  if (n !== undefined || size >= 1000) return digits(100 * v, n || 3) + "%";
  return size < 0.05 ? "0%" : trimmed(rounded(100 * v, 1)) + "%";
}

// rounded is toFixed that rounds what is just in the middle to the even neighbour, as Go does.
function rounded(v, decimals) {
  const text = v.toFixed(decimals);
  const middle = v.toFixed(decimals + 30).endsWith("5" + "0".repeat(29));
  return middle && "13579".includes(text[text.length - 1]) ? (v * (1 - 2 ** -50)).toFixed(decimals) : text;
}

function scaled(v, units, suffix, n) {
  const reached = 1 - 0.5 * 10 ** -n; // rounded to n digits, it is 1
  const [unit, name] = units.find(([unit]) => Math.abs(v) >= unit * reached) || units[units.length - 1];
  return digits(v / unit, n) + " " + name + suffix;
}

// duration is in s, ms, µs or ns; from ten minutes on in min and s, from an hour on in h and min.
function duration(v, n) {
  const size = Math.abs(v), sign = v < 0 ? "-" : "";
  if (size === 0) return "0 s";
  if (size < 2e-9) return unknown;
  if (size < 599.5) return scaled(v, clock, "", n);
  let [first, second, whole] = ["min", "s", Math.round(size)];
  if (whole >= 3600) [first, second, whole] = ["h", "min", Math.round(size / 60)];
  if (first === "h" && whole >= 6000) return sign + digits(size / 3600, n) + " h";
  return sign + Math.floor(whole / 60) + " " + first + (whole % 60 ? " " + whole % 60 + " " + second : "");
}

// time is a time since the start: 90 s are 1:30.
function time(v) {
  if (v < 60 || v >= 1e9) return digits(v, 3) + " s";
  const s = Math.round(v), two = (n) => String(n).padStart(2, "0");
  return s < 3600 ? Math.floor(s / 60) + ":" + two(s % 60) : Math.floor(s / 3600) + ":" + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
}

const writers = {
  "s": duration,
  "clock": (v) => time(v),
  "By": (v, n) => scaled(v, binary, "B", n),
  "By/s": (v, n) => scaled(v, SI.slice(1), "B/s", n),
  "binary By/s": (v, n) => scaled(v, binary, "B/s", n),
  "Hz": (v, n) => scaled(v, SI.slice(2), "Hz", n),
  "{flop}/s": (v, n) => scaled(v, [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1, ""]], "FLOP/s", n),
  "W": (v, n) => digits(v, n) + " W",
  "Cel": (v, n) => digits(v, n) + " °C",
  "percentile": (v, n) => "P" + digits(v, n),
  "{token}/s": (v, n) => digits(v, n) + " tokens/s",
  "{sample}/s": (v, n) => digits(v, n) + " samples/s",
};

// write is a number with its unit; null is not known. Numbers have three digits, unless it is said.
function write(v, unit, digitsWanted) {
  if (v === null || v === undefined || !Number.isFinite(v)) return unknown;
  if (unit === "1") return share(v, digitsWanted);
  const n = digitsWanted || 3;
  const writer = writers[unit];
  return writer ? writer(v, n).trim() : digits(v, n) + (unit && !unit.startsWith("{") ? " " + unit : "");
}
