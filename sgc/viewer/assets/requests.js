// Requests and calls of tools: a table with their times, and one of them as a whole.

function requestsSection(data, show, goTo) {
  const run = data.run;
  const section = el("section", { class: "fill" });
  const side = el("div", { class: "side" }, "Pick a request.");
  const wide = el("div", { class: "wide" });
  const manyRows = run.requests.some((each) => each.row !== run.requests[0].row);
  section.append(
    el("div", { class: "tools" }, manyRows ? "Each row from its own first request." : "", legend([
      ["queue", "sent, waiting"], ["computed", "prompt computed"], ["decode", "generating"], ["tool", "a tool"]])),
    el("div", { class: "split" }, wide, side));
  const found = { pick: () => {} };
  show.push(() => {
    const rows = [...run.requests, ...run.calls];
    rows.forEach((each, index) => {
      each.id = index;
      each.share = each.prompt ? each.cached / each.prompt : null;
    });
    found.pick = makeTable(wide, requestColumns(rows, manyRows, manyRows ? rowStarts(rows) : null), rows,
      (each) => side.replaceChildren(requestDetail(run, each, goTo)),
      { initialSort: [{ column: "start", dir: "asc" }] }).pickId;
  });
  section.pick = (id) => found.pick(id);
  return section;
}

function rowStarts(rows) {
  const starts = new Map();
  for (const each of rows) starts.set(each.row, Math.min(starts.get(each.row) ?? Infinity, each.start));
  return starts;
}

function requestColumns(rows, manyRows, origin) {
  const begin = (each) => (origin ? each.start - origin.get(each.row) : each.start);
  const most = rows.reduce((end, each) => Math.max(end, begin(each) + each.took), 1e-9);
  return [
    ...(manyRows ? [column("row", "row", { width: 80, sorter: "alphanum" })] : []),
    column("name", "name", { width: 110 }),
    { title: `0 to ${seconds(most)}`, field: "bar", width: 260, headerSort: false, formatter: (cell) => timeBar(cell.getData(), begin(cell.getData()), most) },
    numberColumn("took", "took", seconds), numberColumn("prompt", "prompt"),
    numberColumn("cached", "share", (value) => percent(value, 1)), numberColumn("generated", "completion"),
    ...(rows.some((each) => each.cost != null) ? [numberColumn("cost", "cost", money)] : []),
    column("kind", "kind", { width: 90 }), column("stream", "path", { maxInitialWidth: 240 }), column("line", "line"),
    numberColumn("start", "start", seconds),
  ];
}

// The engine tells how long its phases took, not when: they are drawn to end with the request.
function timeBar(each, begin, most) {
  const bar = el("div", { class: "bar" });
  const add = (from, length, colour, word) => length > 0 && bar.append(el("i", {
    style: `left:${(100 * from) / most}%;width:${(100 * length) / most}%;background:var(--${colour})`, title: `${word}: ${seconds(length)}` }));
  if (each.kind === "tool") {
    add(begin, each.took, "tool", "the tool");
    return bar;
  }
  const decode = Math.min(each.took, each.decode);
  const prefill = Math.min(each.took - decode, each.prefill);
  const before = each.took - decode - prefill;
  add(begin, before, "queue", "sent, waiting");
  add(begin + before, prefill, "computed", "its prompt computed");
  add(begin + before + prefill, decode, "decode", "generating");
  return bar;
}

function requestDetail(run, each, goTo) {
  const box = el("div", {}, title(`${each.name || each.kind} · row ${each.row}`));
  box.append(facts([
    ["stream", each.path], ["line", each.line], ["took", seconds(each.took)],
    ["tokens", each.prompt === undefined ? "" : `${number(each.prompt)} of the prompt, ${number(each.cached)} cached; ${number(each.completion)} generated`],
    ["cost", money(each.cost)], ["ended by", each.finish], ["reply from", each.from],
    ["settings", run.settings[each.settings] ?? ""], ["seed", each.seed], ["error", each.error],
  ]));
  if (each.kind === "tool") {
    box.append(el("h2", {}, "Arguments"), pieces([["value", asText(each.arguments)]]), el("h2", {}, "Result"), pieces([["value", asText(each.value)]]));
    return box;
  }
  box.append(el("button", { type: "button", class: "link", onclick: () => goTo("rows", each.row) }, "the whole row"));
  box.append(el("h2", {}, "Prompt and reply"));
  const reply = each.kind === "generate" ? [["generated", each.text]] : each.text ? [["chosen", each.text]] : [];
  box.append(pieces([...promptPieces(run, each.part), ...reply]));
  if (each.choices) box.append(el("h2", {}, "Choices"), facts(each.choices.map((choice, index) => [String(index + 1), choice + (choice === each.text ? "  ← chosen" : "")])));
  return box;
}
