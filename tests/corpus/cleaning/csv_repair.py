"""Repairs the rows of a CSV file that have the wrong number of fields."""

import csv
import io

import sgc


def read_rows(text):
    return list(csv.reader(io.StringIO(text)))


def write_row(row):
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(row)
    return out.getvalue()


class RepairFailed(ValueError):
    def __init__(self, line, row):
        super().__init__(f"line {line}: {row}")
        self.line = line


@sgc.function
def repair(s, header: list[str], examples: list[list[str]], row: list[str], line: int):
    s += f"Each line has {len(header)} fields: {write_row(header)}\n"
    for e in examples:
        s += write_row(e) + "\n"
    s += f"\nBroken line: {','.join(row)}\n"
    for attempt in range(2):
        s += "Repaired:" + sgc.gen("line", max_tokens=48, stop="\n") + "\n"
        repaired = read_rows(s["line"].strip())
        if repaired and len(repaired[0]) == len(header):
            return [cell.strip() for cell in repaired[0]]
        s += f"That has {len(repaired[0]) if repaired else 0} fields.\n"
    return None


@sgc.function
def program(s, text: str, strict: bool = False):
    rows = read_rows(text)
    if not rows:
        return []
    header, *body = rows
    good = [r for r in body if len(r) == len(header)]
    fixed = 0
    result = [header]
    try:
        for line, row in enumerate(body, start=2):
            if len(row) != len(header):
                new = repair(header, good[:2], row, line).ret_value
                if new is None and strict:
                    raise RepairFailed(line, row)
                fixed += new is not None
                row = new or [*row, *[""] * len(header)][: len(header)]
            result.append(row)
    except RepairFailed as e:
        s += f"Giving up at line {e.line}. A message to the sender of the file:"
        s += sgc.gen("message", max_tokens=48, stop="\n")
        return None
    s += f"{fixed} of {len(body) - len(good)} broken rows were repaired.\n"
    s += "\n".join(write_row(r) for r in result)
    return result


TABLE = "name,city,age\nAnn,Oslo,31\nBob,New York, NY,44\nCy\n"
ARGUMENTS = [{"text": TABLE}, {"text": TABLE, "strict": True}, {"text": ""}, {"text": "a,b\n1,2\n"}]
REPLIES = [' Bob,"New York, NY",44', " Cy,,", " Bob,New York,NY,44", " ", " Cy,unknown,0"]
