// Rows of a job or of several runs: a table that filters, and one row as a whole.

const MOST_COLUMNS = 8;

function rowsSection(data, show, goTo) {
  const section = el("section", { class: "fill" });
  const side = el("div", { class: "side" }, "Pick a row.");
  const wide = el("div", { class: "wide" });
  const failed = data.rows.rows.filter((row) => row.error).length;
  const found = { table: null, pick: () => {} };
  const only = el("input", { type: "checkbox", id: "only-failed", onchange: () =>
    only.checked ? found.table.setFilter("status", "=", "failed") : found.table.clearFilter() });
  section.append(
    el("div", { class: "tools" }, failed ? only : null, failed ? el("label", { for: "only-failed" }, `only the ${number(failed)} that failed`) : null,
      el("span", { class: "note", style: "margin:0" }, `${number(data.rows.all)} rows. A number's filter takes > 10, <= 5.`)),
    el("div", { class: "split" }, wide, side));
  show.push(() => {
    const rows = data.rows.rows.map(tableRow);
    const made = makeTable(wide, rowColumns(data.rows.rows), rows, (row) => side.replaceChildren(rowDetail(data, row.full, goTo)),
      { rowFormatter: (row) => row.getElement().classList.toggle("bad", row.getData().status === "failed") });
    found.table = made.table;
    found.pick = made.pickId;
    if (rows.length === 1) made.table.on("tableBuilt", () => made.pickId(rows[0].id));
  });
  section.pick = (id) => found.pick(id);
  return section;
}

function tableRow(row) {
  const usage = row.usage ?? {};
  const flat = { id: row.key, key: row.key, full: row, status: row.error ? "failed" : row.begun ? "not done" : "done", error: row.error ?? "" };
  for (const [name, value] of Object.entries(row.inputs ?? {})) flat[`in_${name}`] = value;
  for (const [name, value] of Object.entries(row.variables ?? {})) flat[`var_${name}`] = value;
  if (row.return !== undefined && row.return !== null) flat.returned = row.return;
  flat.prompt = usage.prompt_tokens;
  flat.share = usage.prompt_tokens ? usage.cached_tokens / usage.prompt_tokens : null;
  flat.completion = usage.completion_tokens;
  flat.cost = usage.cost_usd;
  return flat;
}

function rowColumns(rows) {
  const names = (part) => {
    const found = new Set();
    for (const row of rows) for (const name of Object.keys(row[part] ?? {})) if (found.size < MOST_COLUMNS) found.add(name);
    return [...found];
  };
  const any = (test) => rows.some(test);
  return [
    column("key", "key", { width: 90, sorter: "alphanum" }),
    column("status", "status", { width: 90 }),
    ...names("inputs").map((name) => column(name, `in_${name}`, { maxInitialWidth: 260 })),
    ...names("variables").map((name) => column(name, `var_${name}`, { maxInitialWidth: 260 })),
    ...(any((row) => row.return != null) ? [column("returned", "returned", { maxInitialWidth: 200 })] : []),
    ...(any((row) => row.error) ? [column("error", "error", { maxInitialWidth: 320 })] : []),
    ...(any((row) => row.usage) ? [numberColumn("prompt", "prompt"), numberColumn("cached", "share", (value) => percent(value, 1)), numberColumn("generated", "completion")] : []),
    ...(any((row) => row.usage?.cost_usd != null) ? [numberColumn("cost", "cost", money)] : []),
  ];
}

function rowDetail(data, row, goTo) {
  const box = el("div", {}, title(`row ${row.key}`));
  if (row.error) box.append(el("pre", { class: "box bad" }, shown(row.error)));
  const told = (word, values) => values && Object.keys(values).length &&
    box.append(title(word), facts(Object.entries(values).map(([name, value]) => [name, asText(value)])));
  told("Inputs", row.inputs);
  told("Variables", row.variables);
  if (row.return !== undefined && row.return !== null) box.append(el("h2", {}, "Returned"), el("pre", { class: "box" }, shown(asText(row.return))));
  const requests = (data.run?.requests ?? []).map((each, index) => [each, index]).filter(([each]) => each.row === row.key);
  if (row.streams) for (const [name, text, found] of row.streams) box.append(title(name ? `Stream ${name}` : "Text"), pieces(found?.length ? found : coloured(data.run, requests, text)));
  else for (const [path, [each]] of lastOfStreams(requests)) box.append(title(`Stream ${path}`), pieces([...promptPieces(data.run, each.part), ["generated", each.text ?? ""]]));
  if (requests.length) {
    box.append(el("h2", {}, "Requests"));
    for (const [each, index] of requests.slice(0, 200)) box.append(el("div", {}, el("button", { type: "button", class: "link", onclick: () => goTo("requests", index) }, oneLine(each.name || each.kind, 60)), ` ${oneLine(each.line, 60)} · ${seconds(each.took)}`));
  }
  return box;
}

// The last request of each stream, whose prompt and reply are the stream so far.
function lastOfStreams(requests) {
  const last = new Map();
  for (const pair of requests) if (pair[0].kind !== "commit") last.set(pair[0].path, pair);
  return last;
}

// A stream's text with the parts that a model wrote, where a request's prompt and reply are its beginning.
function coloured(run, requests, text) {
  let best = null;
  for (const [each] of requests) {
    if (each.text === null || each.kind === "commit") continue;
    const found = [...promptPieces(run, each.part), [each.kind === "generate" ? "generated" : "chosen", each.text]];
    const whole = found.map(([, piece]) => piece).join("");
    if (text.startsWith(whole) && (best === null || whole.length > best.length)) best = { found, length: whole.length };
  }
  return best ? [...best.found, ["text", text.slice(best.length)]] : [["text", text]];
}
