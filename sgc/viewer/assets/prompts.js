// The tree of prompts: each part once, with how many requests share it, and what was computed.

const AT_ONCE = 100;
const OPEN_AT_FIRST = 30;
const unfolds = new WeakMap();

function unfold(fold) {
  unfolds.get(fold)?.();
  unfolds.delete(fold);
  fold.open = true;
}

function childrenOf(run) {
  if (!run.children) {
    run.children = run.parts.map(() => []);
    run.parts.forEach((part, index) => index && run.children[part.parent].push(index));
    for (const found of run.children) found.sort((one, other) => run.parts[other].requests - run.parts[one].requests || one - other);
    run.endsAt = run.parts.map(() => []);
    run.requests.forEach((request, index) => run.endsAt[request.part].push(index));
  }
  return run.children;
}

function promptsSection(data, show, goTo) {
  const run = data.run;
  const section = el("section");
  const tokens = run.totals.prompt;
  section.append(
    el("p", { class: "note" }, `All prompts as one tree: what begins alike stands once. Of ${number(tokens)} prompt tokens, ` +
      `${number(run.totals.cached)} were cached; if each part were computed once, ${number(onceOf(run))} would be computed. ` +
      "The tokens of a part are estimated from its characters."),
    legend([["cached", "cached"], ["computed", "computed"], ["generation", "written by a model"]]));
  const tree = el("div", { class: "tree" });
  section.append(tree);
  show.push(() => {
    addChildren(tree, run, 0, goTo);
    openFirst(tree, OPEN_AT_FIRST);
  });
  return section;
}

// Opens parts, those near the root first, until so many are in sight.
function openFirst(tree, most) {
  const closed = [...tree.querySelectorAll(":scope > details")];
  for (let left = most - closed.length; closed.length && left > 0;) {
    const fold = closed.shift();
    unfold(fold);
    const inside = [...fold.querySelectorAll(":scope > details")];
    left -= inside.length;
    closed.push(...inside);
  }
}

const onceOf = (run) => run.parts.reduce((sum, part) => sum + (part.requests ? part.tokens / part.requests : 0), 0);

function addChildren(parent, run, index, goTo, from = 0) {
  const children = childrenOf(run)[index];
  const isSame = children.length === 1;
  for (const child of children.slice(from, from + AT_ONCE)) parent.append(partOf(run, child, isSame, goTo));
  const left = children.length - from - AT_ONCE;
  if (left > 0) {
    const more = el("button", { type: "button", class: "link", onclick: () => {
      more.remove();
      addChildren(parent, run, index, goTo, from + AT_ONCE);
    } }, `${number(left)} more`);
    parent.append(more);
  }
}

function partOf(run, index, isSame, goTo) {
  const part = run.parts[index];
  const snip = el("span", { class: "snip" });
  for (const [kind, text] of partPieces({ ...part, text: part.text.slice(0, 160) })) {
    snip.append(kind === "generated" ? el("span", { class: "generated" }, shown(oneLine(text))) : shown(oneLine(text)));
  }
  const share = part.tokens ? 1 - part.computed / part.tokens : 0;
  const fold = el("details", { class: isSame ? "same" : "" }, el("summary", {}, snip,
    el("span", { class: "fact" }, `${number(part.requests)} request${part.requests === 1 ? "" : "s"}`),
    el("span", { class: "fact" }, `≈${number(part.tokens)} tokens`),
    el("span", { class: "share", role: "img", title: `${percent(share, 1)} cached`, "aria-label": `${percent(share, 1)} cached` },
      el("i", { style: `width:${Math.round(100 * share)}%` }))));
  unfolds.set(fold, () => {
    if (part.text.length > 140) fold.append(pieces(partPieces(part)));
    fold.append(endings(run, index, goTo));
    addChildren(fold, run, index, goTo);
    // Where nothing branches, the next part is what one wants to see.
    if (run.children[index].length === 1) unfold(fold.querySelector(":scope > details"));
  });
  fold.addEventListener("toggle", () => fold.open && unfold(fold));
  return fold;
}

function endings(run, index, goTo) {
  const ends = run.endsAt[index];
  const box = el("div", { class: "ends" });
  for (const each of ends.slice(0, 20)) {
    const request = run.requests[each];
    const reply = request.kind === "commit" ? "computed ahead" : request.text === null ? "a choice" : oneLine(request.text, 100);
    box.append(el("div", {}, el("button", { type: "button", class: "link", onclick: () => goTo("requests", each) }, oneLine(request.name || request.kind, 60)),
      ` of row ${oneLine(request.row, 60)}: `, el("span", { class: request.kind === "generate" ? "generated" : "chosen-text" }, shown(reply))));
  }
  if (ends.length > 20) box.append(el("div", {}, `and ${number(ends.length - 20)} more`));
  return box;
}

function partPieces(part) {
  const found = [];
  let at = 0;
  for (const [start, end] of part.model ?? []) {
    if (start >= part.text.length) break;
    if (start > at) found.push(["text", part.text.slice(at, start)]);
    found.push(["generated", part.text.slice(start, end)]);
    at = end;
  }
  found.push(["text", part.text.slice(at)]);
  return found;
}

// A whole prompt, from the root of the tree.
function promptPieces(run, index) {
  const path = [];
  for (let at = index; at; at = run.parts[at].parent) path.unshift(at);
  return path.flatMap((at) => partPieces(run.parts[at]));
}
