// The overview: sums, and what each generation of the program cost.

function summarySection(data, show) {
  const section = el("section");
  const run = data.run;
  if (run) section.append(tiles(data), notes(data));
  else section.append(programFacts(data.program));
  if (run && run.requests.length) {
    section.append(el("h2", {}, "By line of the program"));
    const place = el("div", { style: "height:min(60vh,420px);display:flex" });
    section.append(place);
    show.push(() => lineTable(place, run));
  }
  return section;
}

function tiles(data) {
  const { totals, requests, calls } = data.run;
  const all = [...requests, ...calls];
  const end = all.reduce((most, each) => Math.max(most, each.start + each.took), 0);
  const rows = data.rows;
  const entries = [
    rows && rows.all > 1 ? [number(rows.all), rows.failed ? `rows, ${number(rows.failed)} failed` : "rows"] : null,
    [number(totals.requests), totals.not_asked ? `requests, ${number(totals.not_asked)} more not asked` : "requests"],
    calls.length ? [number(calls.length), "calls of tools"] : null,
    [number(totals.prompt), "prompt tokens"],
    totals.prompt ? [percent(totals.cached, totals.prompt), "of them from the cache"] : null,
    [number(totals.completion), "tokens generated"],
    totals.cost === null ? null : [money(totals.cost), "by the providers' prices"],
    [seconds(end), "from the first request to the last reply"],
  ];
  return el("div", { class: "tiles" }, ...entries.filter(Boolean).map(([value, word]) =>
    el("div", { class: "tile" }, el("b", {}, value), el("span", {}, word))));
}

function notes(data) {
  const run = data.run;
  const told = [];
  if (run.left_out) told.push(`${number(run.left_out)} requests and calls are left out: a page holds 50,000.`);
  if (run.cut_texts) told.push(`${number(run.cut_texts)} long texts are cut.`);
  if (run.requests.some((each) => each.is_cut)) told.push("Of long prompts the log holds the last 20,000 characters: they are drawn apart from others.");
  if (data.rows && data.rows.rows.length < data.rows.all) told.push(`The table holds ${number(data.rows.rows.length)} of ${number(data.rows.all)} rows, with those that failed.`);
  if (run.about.options) told.push(`Options: ${JSON.stringify(run.about.options)}`);
  return el("div", { class: "note" }, ...told.map((line) => el("p", {}, line)));
}

function programFacts(program) {
  if (!program) return el("p", {});
  const nodes = program.graphs.flatMap((graph) => graph.blocks.flatMap((block) => block.nodes));
  const count = (kind) => nodes.filter((node) => node[1] === kind).length;
  return el("div", { class: "tiles" }, ...[
    [nodes.length, "nodes"], [program.graphs.reduce((sum, graph) => sum + graph.blocks.length, 0), "blocks"],
    [count("generation"), "generations"], [count("choice"), "choices"], [count("tool"), "tools"],
    [program.passes.length, "passes changed it"],
  ].map(([value, word]) => el("div", { class: "tile" }, el("b", {}, number(value)), el("span", {}, word))));
}

// The sums of requests by the line and variable that they are of.
function byLine(run) {
  const sums = new Map();
  for (const each of [...run.requests, ...run.calls]) {
    const key = `${each.line}\n${each.name}\n${each.kind}`;
    if (!sums.has(key)) {
      sums.set(key, { id: sums.size, line: each.line, name: each.name, kind: each.kind, requests: 0, prompt: 0, cached: 0, completion: 0, took: 0, cost: null });
    }
    const sum = sums.get(key);
    sum.requests += 1;
    sum.took += each.took;
    if (each.from && each.from !== "an earlier reply") continue;
    sum.prompt += each.prompt ?? 0;
    sum.cached += each.cached ?? 0;
    sum.completion += each.completion ?? 0;
    if (each.cost !== null && each.cost !== undefined) sum.cost = (sum.cost ?? 0) + each.cost;
  }
  return [...sums.values()];
}

function lineTable(place, run) {
  const rows = byLine(run).map((sum) => ({ ...sum, mean: sum.took / sum.requests, share: sum.prompt ? sum.cached / sum.prompt : null, computed: sum.prompt - sum.cached }));
  const columns = [
    column("line", "line"), column("name", "name"), column("kind", "kind"),
    numberColumn("times", "requests"), numberColumn("prompt tokens", "prompt"),
    numberColumn("cached", "share", (value) => percent(value, 1)), numberColumn("computed", "computed"),
    numberColumn("generated", "completion"), numberColumn("mean time", "mean", seconds),
  ];
  if (rows.some((row) => row.cost !== null)) columns.push(numberColumn("cost", "cost", money));
  makeTable(place, columns, rows, null, { layout: "fitDataTable", initialSort: [{ column: "computed", dir: "desc" }] });
}
