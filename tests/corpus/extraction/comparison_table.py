"""A markdown table from prose: rows are generated, split into cells, checked, filled up, sorted."""

import sgc


def parse_row(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def to_number(cell):
    digits = "".join(c for c in cell if c.isdigit() or c == ".")
    try:
        return float(digits)
    except ValueError:
        return float("-inf")


def render(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, ["-" * w for w in widths], *rows]:
        lines.append("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |")
    return "\n".join(lines)


@sgc.function(max_turns=8)
def program(s, text: str, columns: list[str], sort_by: str | None = None):
    s += text + "\n\nThe same as a table:\n"
    s += "| " + " | ".join(columns) + " |\n"
    s += sgc.gen("body", max_tokens=120, stop="\n\n") + "\n"
    rows = []
    seen = set()
    for line in s["body"].split("\n"):
        if "|" not in line or set(line) <= set("|-: "):
            continue
        row = parse_row(line)
        if row[0].lower() in seen:
            continue
        seen.add(row[0].lower())
        while len(row) < len(columns):
            s += f"\n{columns[len(row)]} of {row[0]}:"
            s += sgc.gen("cell", max_tokens=8, stop=["\n", "|"])
            row.append(s["cell"].strip() or "?")
        rows.append(row[: len(columns)])
    if sort_by in columns:
        i = columns.index(sort_by)
        rows.sort(key=lambda row: to_number(row[i]), reverse=True)
    if not rows:
        return "(empty)"
    table = render(columns, rows)
    s += "\n" + table + "\nThe winner is"
    s += sgc.gen("winner", max_tokens=8, stop=["\n", "."])
    return table


ARGUMENTS = [
    {
        "text": "The Alfa costs 200 and weighs 3 kg. The Beta, 2 kg, costs 150.",
        "columns": ["name", "price", "weight"],
        "sort_by": "price",
    },
    {"text": "", "columns": ["a"]},
]
REPLIES = [
    "|------|---|\n| Alfa | 200 | 3 kg |\n| Beta | 150 |",
    "| Beta | 150 | 2 kg | x |\n| beta | 1 | 1 |",
    "| Gamma | cheap | light |\n| Alfa | 200 | 1 kg |",
    "no table",
    " 2 kg",
]
