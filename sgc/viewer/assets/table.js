// Tables: thousands of rows, of which those in sight are drawn.

function column(title, field, more = {}) {
  return {
    title,
    titleFormatter: () => shownCell(title), // a title itself would be read as HTML
    field,
    headerFilter: "input",
    headerFilterFunc: (asked, value) => asText(value).toLowerCase().includes(asked.toLowerCase()),
    formatter: (cell) => shownCell(asText(cell.getValue())),
    minWidth: 70,
    ...more,
  };
}

function shownCell(text) {
  const cell = el("span", {});
  cell.append(shown(oneLine(text)));
  return cell;
}

// A column of numbers; its filter takes `> 10`, `<= 5`, `= 3`, or a beginning.
function numberColumn(title, field, form = number, more = {}) {
  return column(title, field, {
    hozAlign: "right",
    cssClass: "number",
    sorter: "number",
    headerFilterFunc: compares,
    formatter: (cell) => {
      const value = cell.getValue();
      return shownCell(value === null || value === undefined ? "" : form(value));
    },
    ...more,
  });
}

function compares(asked, value) {
  const found = /^\s*(<=|>=|<|>|=)\s*(-?[\d.]+)\s*$/.exec(asked);
  if (!found) return asText(value).startsWith(asked.trim());
  const limit = Number(found[2]);
  const tests = { "<": value < limit, ">": value > limit, "<=": value <= limit, ">=": value >= limit, "=": value === limit };
  return value !== null && value !== undefined && tests[found[1]];
}

// Draws a table. onPick: called with a row's data when it is clicked, or Enter is pressed on it.
function makeTable(parent, columns, rows, onPick, options = {}) {
  const place = el("div", { tabindex: "-1" });
  parent.append(place);
  const table = new Tabulator(place, {
    data: rows,
    columns,
    height: "100%",
    layout: "fitDataStretch",
    renderVerticalBuffer: 300,
    placeholder: "nothing fits",
    index: "id",
    nestedFieldSeparator: false, // a variable's name may have a dot
    ...options,
  });
  let picked = null;
  const pick = (row) => {
    if (picked) picked.getElement().classList.remove("picked");
    picked = row;
    row.getElement().classList.add("picked");
    onPick(row.getData());
  };
  if (onPick) {
    table.on("rowClick", (_, row) => pick(row));
    place.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || event.target.tagName === "INPUT") return;
      const active = table.getRows("active");
      const at = picked ? active.findIndex((row) => row.getData().id === picked.getData().id) : -1;
      const next = active[Math.max(0, Math.min(active.length - 1, at + step))];
      if (!next) return;
      event.preventDefault();
      table.scrollToRow(next, "nearest", false);
      pick(next);
    });
    place.setAttribute("tabindex", "0");
    place.setAttribute("aria-label", "Table; arrow keys pick a row");
  }
  return { table, pickId: (id) => {
    const row = table.getRow(id);
    if (row) table.scrollToRow(row, "center", false).then(() => pick(row)).catch(() => pick(row));
  } };
}
