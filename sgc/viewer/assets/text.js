// Elements and texts. Every text becomes a text node: nothing here parses HTML.

function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Characters that would be invisible, or change how others are shown.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u;

function shown(text) {
  const found = document.createDocumentFragment();
  let rest = text;
  for (let at = rest.search(CONTROLS); at >= 0; at = rest.search(CONTROLS)) {
    const point = rest.codePointAt(at);
    const code = point.toString(16).toUpperCase().padStart(4, "0");
    found.append(rest.slice(0, at), el("span", { class: "control", title: `the character U+${code}` }, `U+${code}`));
    rest = rest.slice(at + (point > 0xffff ? 2 : 1));
  }
  found.append(rest);
  return found;
}

const oneLine = (text, most = 200) => {
  const start = text.length > most ? `${text.slice(0, most)}…` : text;
  return start.replace(/\r?\n/g, "⏎");
};

const asText = (value) =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

const number = (value) => (value === null || value === undefined ? "" : Math.round(value).toLocaleString("en"));
const percent = (part, all) => (all ? `${Math.round((100 * part) / all)}%` : "");
const money = (value) => (value === null || value === undefined ? "" : `$${Number(value.toPrecision(4))}`);
const seconds = (value) =>
  value >= 1 ? `${value.toFixed(2)} s` : `${(1000 * value).toFixed(value < 0.01 ? 2 : 0)} ms`;

// A text of pieces: [kind, text].
const KINDS = { generated: "generated", chosen: "chosen-text", value: "value-text", role_begin: "role-text", role_end: "role-text" };

function pieces(found, wrap = "pre") {
  const box = el(wrap, { class: "box", tabindex: "0" });
  for (const [kind, text] of found) {
    box.append(KINDS[kind] ? el("span", { class: KINDS[kind], title: kind.replace("_", " ") }, shown(text)) : shown(text));
  }
  return box;
}

function title(text) {
  const made = el("h2", {});
  made.append(shown(oneLine(text, 120)));
  return made;
}

function facts(pairs) {
  const list = el("dl");
  for (const [name, value] of pairs) {
    if (value === "" || value === null || value === undefined) continue;
    list.append(el("dt", {}, name), el("dd", {}, value instanceof Node ? value : shown(String(value))));
  }
  return list;
}

function legend(entries) {
  return el("div", { class: "legend" }, ...entries.map(([colour, word]) =>
    el("span", {}, el("i", { style: `background:var(--${colour})` }), word)));
}
