"""Rows of every format, of patterns of files, and those that are none; results of every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sgc.errors import UsageError
from sgc.ir.types import BOOL, FLOAT, INT, JSON, TEXT, list_of
from sgc.runs.jobs.out import open_out
from sgc.runs.jobs.records import COLUMNS
from sgc.runs.rows.hashes import Hashes
from sgc.runs.rows.records import BadRow, Columns, InputRow
from sgc.runs.rows.source import open_source
from sgc.runs.rows.survey import Asked, survey

TYPES = {"n": INT, "x": FLOAT, "ok": BOOL, "tags": list_of(TEXT), "data": JSON, "text": TEXT}
ROWS = [{"text": f"t,\n{i}", "n": i, "tags": ["a", "ä"]} for i in range(5)]


def read(path: str | Path, types=TYPES, form=None) -> list[InputRow | BadRow]:
    return list(open_source(str(path), form).read(types))


def arguments(path: str | Path, **more) -> list:
    return [row.arguments if isinstance(row, InputRow) else row.why for row in read(path, **more)]


def test_cells_of_csv_are_read_as_their_parameters_types(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(
        "\ufeffcustom_id,n,x,ok,tags,data,text,other\r\n"
        'a,5,0.5,True,"[""u"", ""v""]","{""k"": 1}",007,8\r\n'
        ',,2,no,[],plain,"two\nlines, ü",\r\n'
        "b,five,1,1,[],1,t,o\r\n"
        "c,1\r\n".encode()
    )
    assert arguments(path) == [
        {"n": 5, "x": 0.5, "ok": True, "tags": ["u", "v"], "data": {"k": 1}, "text": "007",
         "other": "8"},
        {"x": 2.0, "ok": False, "tags": [], "data": "plain", "text": "two\nlines, ü", "other": ""},
        "column n: expected int, found 'five'",
        "expected 8 cells, found 2",
    ]  # fmt: skip
    found = read(path)
    assert [row.key for row in found[:2]] == ["a", "1"]
    assert [row.place for row in found] == [f"{path}:{line}" for line in (2, 3, 5, 6)]
    path.write_bytes(b"text,n\n\xff,1\n")
    assert arguments(path) == ["column text: expected UTF-8; save the file so"]
    path.write_bytes(b"text\na,1\n")
    assert arguments(path) == ["expected 1 cell, found 2"]
    path.write_bytes(b"a,a\n")
    with pytest.raises(UsageError, match="found 'a' twice"):
        read(path)


WRONG = {
    "[{}": "item 1: expected , or ]",
    "{}": r"found no \[",
    "[{}] x": "nothing after",
    '[{"a": }]': "item 1: expected a JSON",
    '[{}, {"a": 1, "a": 2}]': "item 2: expected a JSON object: an object has the name 'a' twice",
}


def test_an_array_is_read_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("sgc.runs.rows.json_array._PIECE", 7)
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS, ensure_ascii=False, indent=1))
    assert arguments(path) == ROWS
    path.write_text("[12345678, 9]")
    assert arguments(path) == ["expected a JSON object, found int"] * 2
    for text, why in WRONG.items():
        path.write_text(text)
        with pytest.raises(UsageError, match=why):
            read(path)


def test_patterns_name_files_in_order_and_keys_go_on(tmp_path):
    for name, rows in {"b.jsonl": ROWS[2:], "a.json": ROWS[:2]}.items():
        text = json.dumps(rows) if name == "a.json" else "\n".join(map(json.dumps, rows))
        (tmp_path / name).write_text(text)
    found = read(tmp_path / "*")
    assert [row.arguments for row in found] == ROWS
    assert [row.key for row in found] == ["0", "1", "2", "3", "4"]
    assert found[2].place == f"{tmp_path}/b.jsonl:1"
    with pytest.raises(UsageError, match="no file is called so"):
        open_source(str(tmp_path / "*.csv"))


def test_parquet_is_read_and_written(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(arrow.Table.from_pylist([*ROWS, {"text": None, "n": 7}]), path)
    assert arguments(path)[:-1] == ROWS
    assert arguments(path)[-1] == {"n": 7}
    out = tmp_path / "out.parquet"
    good = {"key": "a", "inputs": {"x": 1}, "text": "t", "variables": {"v": "w"}, "return": [1],
            "usage": {"requests": 2}}  # fmt: skip
    bad = {"key": "b", "inputs": {}, "error": {"type": "E", "message": "m"}}
    with open_out(out) as file:
        for record in (good, bad):
            file.write(record)
        assert not out.exists()
        file.finish()
    assert [*tmp_path.glob("out*")] == [out]
    rows = parquet.read_table(out).to_pylist()
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["return"] == "[1]"
    assert (rows[1]["error_type"], rows[1]["error"], rows[1]["text"]) == ("E", "m", None)
    with open_out(out) as file:  # more rows are added
        file.unpack()
        assert [each.key for each in file.done(lambda error: True)] == ["a"]
        file.write({**good, "key": "c"})
        file.finish()
    again = parquet.read_table(out).to_pylist()
    assert [row["key"] for row in again] == ["a", "c"]
    assert again[0] == rows[0]


def write_lines(path: Path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


def looked(path: str, **asked):
    told = list[str]()

    def check(row) -> None:
        if not isinstance(row.get("n", 0), int):
            raise UsageError("n must be int")

    source = open_source(path)
    found = survey(source, {}, check, Asked(**asked), told.append)
    return [row.key for row in found.chosen.among(source.read())], found, told


def test_bad_rows_are_an_error_or_left_out_and_counted(tmp_path):
    path = write_lines(tmp_path / "r.jsonl", '{"n": 1}', "[1]", '{"n": "a"}', '{"n": 2}', "{",
                       '{"n": "\\ud800"}')  # fmt: skip
    with pytest.raises(UsageError, match=r"r.jsonl:2: expected a JSON object, found list"):
        looked(path)
    keys, found, told = looked(path, skip_bad=True)
    assert keys == ["0", "3"]
    assert (found.n_rows, found.n_bad) == (2, 4)
    assert [line.partition("r.jsonl:")[2][:2] for line in told] == ["2:", "3:", "5:", "6:"]


def test_rows_that_are_added_while_a_job_runs_are_not_read(tmp_path):
    path = Path(write_lines(tmp_path / "r.jsonl", '{"n": 1}'))
    source = open_source(str(path))
    found = survey(source, {}, lambda row: None, Asked(), print)
    write_lines(path, '{"n": 1}', '{"n": 2}')
    assert [row.key for row in found.chosen.among(source.read())] == ["0"]


def test_a_key_that_is_no_text_of_utf_8_is_refused(tmp_path):
    path = write_lines(tmp_path / "r.jsonl", '{"custom_id": "\\ud800", "n": 1}')
    with pytest.raises(UsageError, match="custom_id is not valid Unicode"):
        looked(path)


def test_samples_stand_for_all_rows_and_keys_come_once(tmp_path):
    lines = [json.dumps({"n": 1, "k": i % 2, "m": 0}) for i in range(50)]
    path = write_lines(tmp_path / "r.jsonl", *lines, '{"n": 1, "k": 0.5, "m": 0}')
    _, found, _ = looked(path)
    assert [row.key for row in found.samples] == ["0", "1", "50"]
    keys = looked(path, sample=10, seed=3)[0]
    assert len(keys) == 10
    assert keys == looked(path, sample=10, seed=3)[0] != looked(path, sample=10, seed=4)[0]
    assert looked(path, limit=3)[0] == ["0", "1", "2"]
    write_lines(tmp_path / "r.jsonl", *lines, '{"custom_id": 7}')
    with pytest.raises(UsageError, match=r"r.jsonl:51: the key '7' is that of line 8 too"):
        looked(path)


def test_a_set_of_hashes_takes_32_bytes_a_text_at_most():
    keys, n = Hashes(has_values=True), 20_000
    assert all(keys.add(f"key {i}", i) for i in range(n))
    assert not keys.add("key 7", 1)
    assert [keys.get("key 7"), keys.get("no key"), len(keys)] == [7, None, n]
    assert keys._slots.itemsize * len(keys._slots) <= 32 * n + 2 * 8 * 4096


def with_columns(path: Path, types=TYPES, **meant) -> list:
    source = open_source(str(path), columns=Columns(**meant))
    found = list(source.read(types))
    return [(row.key, row.arguments) if isinstance(row, InputRow) else row.why for row in found]


def test_columns_that_are_no_argument_are_left_out_if_that_is_asked_for(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(",id,text,n\n0,a,tea,5\n1,,milk,6\n")  # as pandas writes an index
    with pytest.raises(UsageError, match="a column without a name") as raised:
        with_columns(path)
    assert "--ignore-columns" in raised.value.hint
    no_key = "its 'id', which --key takes as its key, is empty"
    assert with_columns(path, key="id", is_loose=True) == [("a", {"text": "tea", "n": 5}), no_key]
    assert with_columns(path, key="n", is_loose=True) == [
        ("5", {"text": "tea", "n": 5}), ("6", {"text": "milk", "n": 6})
    ]  # fmt: skip
    jsonl = tmp_path / "rows.jsonl"
    jsonl.write_text('{"mail": 7, "text": "tea", "from": "x"}\n')
    assert with_columns(jsonl, key="mail", is_loose=True) == [("7", {"text": "tea"})]
    (why,) = with_columns(jsonl, key="mial")
    assert why.endswith(". Did you mean 'mail'?")


def test_what_to_do_about_other_columns_is_said(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "tea", "from": "x"}\n')

    def check(found):
        if "from" in found:
            raise UsageError("unknown argument 'from'", hint="p takes: text")

    loose = open_source(str(path), columns=Columns(is_loose=True))
    assert survey(loose, TYPES, check, Asked(), str).n_rows == 1
    with pytest.raises(UsageError) as raised:
        survey(open_source(str(path)), TYPES, check, Asked(), str)
    assert "p takes: text\n  --ignore-columns" in raised.value.hint


def test_a_table_without_commas_says_what_seems_to_part_it(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id;text\n1;tea\n")
    with pytest.raises(UsageError, match="';' seems to stand between them"):
        read(path)
