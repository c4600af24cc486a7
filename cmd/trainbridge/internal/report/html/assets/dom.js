// Small helpers. Texts of logs reach the page by textContent only.

let data = JSON.parse(document.getElementById("data").textContent);
const words = data.words;

// plain is a text without what turns the direction of its neighbours, or is not seen.
const plain = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");

// make is an element with attributes and children; children that are texts become text nodes.
function make(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (typeof c === "string" ? plain(c) : c)));
  return e;
}

function shape(tag, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text !== undefined) e.textContent = plain(text);
  return e;
}

// The colours are those of the style sheet, so that both know light and dark.
const style = getComputedStyle(document.documentElement);
const colour = (name) => style.getPropertyValue("--" + name).trim();
const colours = 8;
const ofSeries = (i) => colour("c" + (i % colours));
const faint = (c, share) => c + Math.round(share * 255).toString(16).padStart(2, "0");

function cut(text, n) {
  return text.length > n ? text.slice(0, n - 1) + "…" : text;
}

// tip is the one tooltip of the page.
const tip = make("div", { class: "tip", role: "status", hidden: true });
function showTip(x, y, lines) {
  tip.replaceChildren(...lines.map((line) => make("div", null, line)));
  tip.hidden = false;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = Math.max(4, Math.min(x + 14, room)) + scrollX + "px";
  tip.style.top = y + 14 + scrollY + "px";
}
function hideTip() {
  tip.hidden = true;
}
