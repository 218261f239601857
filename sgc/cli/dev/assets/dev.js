"use strict";
(() => {
// The page of `sgc dev`. Texts are set as text; each version's page is in a frame of its own.

const $ = (id) => document.getElementById(id);
let state = { changes: -1, versions: [] };
let chosen = null; // the version that is shown; null: the last
let beside = null;
let fields = "";

function el(tag, given, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

async function follow() {
  for (;;) {
    try {
      const answer = await fetch(`/state?seen=${state.changes}`);
      state = await answer.json();
      draw();
      await new Promise((done) => setTimeout(done, 60));
    } catch (error) {
      $("status").textContent = `sgc dev does not answer: ${error.message}`;
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

function draw() {
  if (state.name) {
    $("name").textContent = state.name;
    document.title = `${state.name} · sgc dev`;
  }
  const last = state.versions[state.versions.length - 1];
  drawForm(state, last);
  drawVersions(state.versions);
  drawStatus(state, last);
  // Until the last version has its page, the one before it stays.
  const shown = state.versions.find((each) => each.number === chosen) ?? [...state.versions].reverse().find((each) => each.has_page);
  const other = state.versions.find((each) => each.number === beside);
  drawPages([shown, other].filter((each) => each && each.has_page));
}

function drawStatus(state, last) {
  const status = $("status");
  const stream = $("stream");
  status.className = "";
  stream.className = "";
  $("returned").textContent = last?.state === "done" && last.returned !== null && !state.error ? `returns: ${JSON.stringify(last.returned)}` : "";
  if (state.error) {
    status.textContent = "The program cannot be read.";
    status.className = "bad";
    stream.textContent = state.error;
    return;
  }
  if (!last) {
    status.textContent = state.parameters ? "Give the arguments, and run it." : "Reading the program…";
    return;
  }
  const isFailed = last.state === "failed";
  const words = { running: `version ${last.number} runs…`, stopped: `version ${last.number} was stopped`, failed: `version ${last.number} failed` };
  status.textContent = words[last.state] ?? `version ${last.number}: ${count(last.asked.length, "request")} asked, ${last.kept.length} kept, ${last.took_s.toFixed(1)} s`;
  status.className = isFailed ? "bad" : "";
  stream.textContent = isFailed ? last.error || last.text : last.text;
  stream.className = isFailed ? "bad" : "";
}

const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

function drawForm(state, last) {
  if (!state.parameters) return;
  const described = JSON.stringify(state.parameters);
  if (described === fields) return; // what is typed stays
  fields = described;
  const values = { ...(state.arguments ?? {}), ...(last?.arguments ?? {}) };
  $("form").replaceChildren(...state.parameters.map((each) => fieldOf(each, values[each.name] ?? each.default)),
    el("button", { type: "submit" }, "Run"));
}

function fieldOf(parameter, value) {
  const isText = parameter.type === "text";
  const shown = value === null || value === undefined ? "" : isText ? String(value) : JSON.stringify(value);
  const field = el(isText ? "textarea" : "input", { name: parameter.name, "data-type": parameter.type, "data-required": parameter.is_required, ...(isText ? {} : { type: "text" }) });
  field.value = shown;
  return el("label", {}, `${parameter.name}: ${parameter.type}`, field);
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = {};
  for (const field of $("form").querySelectorAll("[name]")) {
    if (field.value === "" && field.dataset.required === "false") continue;
    try {
      values[field.name] = field.dataset.type === "text" ? field.value : JSON.parse(field.value);
    } catch {
      $("status").textContent = `${field.name}: expected ${field.dataset.type}, as JSON`;
      $("status").className = "bad";
      field.focus();
      return;
    }
  }
  chosen = null;
  const answer = await fetch("/run", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values) });
  if (!answer.ok) $("status").textContent = (await answer.json()).error?.message ?? `error ${answer.status}`;
});

function drawVersions(versions) {
  $("versions").replaceChildren(...[...versions].reverse().map((each, index) => {
    const isShown = chosen === null ? index === 0 : each.number === chosen;
    return el("li", { class: isShown ? "shown" : "" },
      el("div", {},
        el("button", { type: "button", onclick: () => show(each.number) }, `version ${each.number}`),
        el("button", { type: "button", "aria-pressed": String(each.number === beside), onclick: () => compare(each.number) }, each.number === beside ? "not beside" : "beside")),
      el("div", { class: each.state === "failed" ? "bad" : "facts" }, each.state === "done" ? `${each.took_s.toFixed(1)} s` : each.state),
      each.asked.length ? el("div", { class: "asked" }, `asked: ${each.asked.join(", ")}`) : "",
      each.kept.length ? el("div", { class: "kept" }, `kept: ${each.kept.join(", ")}`) : "");
  }));
}

function show(number) {
  chosen = number;
  draw();
}

function compare(number) {
  beside = beside === number ? null : number;
  draw();
}

function drawPages(versions) {
  const wanted = [...new Set(versions.map((each) => each.number))];
  const there = [...$("pages").children].map((each) => Number(each.dataset.number));
  if (wanted.join() === there.join()) return;
  $("pages").replaceChildren(...wanted.map((number) =>
    el("figure", { "data-number": number }, el("figcaption", {}, `version ${number}`),
      el("iframe", { src: `/versions/${number}`, sandbox: "allow-scripts", title: `version ${number}` }))));
}

follow();
})();
