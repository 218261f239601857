"""Code that changes a dict by the rows of a list: it may have what a row has, and no row."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from control_flow import agree, equal_or_refused, traced

import sgc

REPLIES = ["a", "b", "", "a,bc,bb,c"]


@sgc.function
def grouped(s, xs: list[str]):
    rows = []
    for x in xs:
        s += x + sgc.gen("m", stop="\n")
        rows.append({"city": s["m"], "age": len(x) if len(x) > 1 else None})
    by_city, oldest, ages = {}, {}, []
    for row in rows:
        by_city.setdefault(row["city"], []).append(row["age"] or 0)
    for n, row in enumerate(rows):
        oldest[row.get("city", "?")] = [n, row["age"]]
    for row in sorted(rows, key=lambda row: row["city"]):
        ages.append((row["city"], row["age"]))
    means = {c: sum(each) / len(each) for c, each in sorted(by_city.items())}
    s += f"{means} {oldest} {ages}" + sgc.gen("z", stop="\n")
    return means, oldest, ages


def test_what_rows_have_is_put_into_a_dict():
    for xs in (["x", "abc", "de"], []):
        agree(grouped, REPLIES, n=4, graph=traced(grouped), xs=xs)


KEEPS = [
    'held.setdefault(row["city"], []).append(row)',
    'held[row["city"]] = row',
    'held[row["city"]] = [row, row["age"]]',
    'held.setdefault(row["city"], []).append(row if row["age"] else None)',
    'held.setdefault(row["city"], []).append(row or row)',
    'other = row; held[row["city"]] = other',
    'held[row["city"]] = max(rows, key=lambda r: r["age"])',
    'held[row["city"]] = [each for each in rows if each["age"]]',
    'held.update({row["city"]: rows[0]})',
    'held[row["city"]] = (lambda: row)()',
    'held[row["city"]] = row | {}',
    'held.setdefault(row["city"], row)',
]
PROGRAM = """
import sgc

def raise_all(found):
    for last in found:
        for each in last if isinstance(last, list) else [last]:
            if isinstance(each, dict):
                each["age"] += 9

@sgc.function
def program(s, q):
    s += q + sgc.gen("names", stop="\\n")
    rows = [{{"city": x[:1], "age": len(x)}} for x in s["names"].split(",")]
    held = {{}}
    for row in rows:
        {line}
        {now}raise_all([held[row["city"]]])
    {later}raise_all(held.values())
    s += f"{{held}} {{rows}}" + sgc.gen("z", stop="\\n")
    return s["z"]
"""


@pytest.mark.sweep
@pytest.mark.parametrize("now", [True, False])
@pytest.mark.parametrize("line", KEEPS)
def test_a_row_that_a_dict_keeps_is_never_another_one(line: str, now: bool, tmp_path: Path):
    path = tmp_path / "kept_rows.py"
    path.write_text(PROGRAM.format(line=line, now="" if now else "# ", later="# " if now else ""))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    equal_or_refused(module.program, REPLIES, n=6)
