// What each pass changed.

function passesSection(data) {
  const section = el("section", {}, el("p", { class: "note" },
    "Passes that changed the program, in their order: what each preserves, and the lines before and after it."));
  for (const pass of data.program.passes) {
    const body = el("div", {}, el("p", {}, shown(pass.summary)));
    if (pass.details.length) body.append(el("pre", {}, shown(pass.details.join("\n"))));
    if (pass.diff) body.append(difference(pass.diff));
    else body.append(el("p", { class: "note" }, "The program before and after it is not in a .sgir file: view the source to see it."));
    section.append(el("details", { class: "pass" }, el("summary", {}, el("b", {}, pass.name), " ",
      el("span", { class: "fact" }, `preserves ${pass.preserves} · ${pass.before} → ${pass.after} nodes`)), body));
  }
  if (!data.program.passes.length) section.append(el("p", {}, "No pass changed it."));
  return section;
}

function difference(lines) {
  const box = el("pre", { class: "box", tabindex: "0" });
  for (const line of lines) {
    const kind = line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
    const row = el("div", { class: kind });
    row.append(shown(line));
    box.append(row);
  }
  return box;
}
