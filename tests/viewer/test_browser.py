"""Pages in a real browser: `make test-browser` makes the environment that drives it.

Skipped without SGC_BROWSER_PYTHON, a Python that has playwright; the browser is SGC_CHROMIUM, else
the system's Chromium.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sgc.ir.text.parser import parse
from sgc.viewer.program_data import program_data
from sgc.viewer.view import View, view

PYTHON = os.environ.get("SGC_BROWSER_PYTHON")
CHROMIUM = os.environ.get("SGC_CHROMIUM") or shutil.which("chromium")
LOOK = Path(__file__).parent / "browser" / "look.py"
TIMEOUT_S = 300
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT_S + 30),
    pytest.mark.skipif(not PYTHON, reason="SGC_BROWSER_PYTHON is not set: make test-browser"),
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium: apt install chromium"),
]

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><b><i>bold</i></b>\u202egnol"
)
PROMPT = f"Answer.\n{HOSTILE}\nQuestion: "


def looked_at(page: View, folder: Path) -> dict[str, Any]:
    """What the browser saw; screenshots are in SGC_SCREENSHOTS, if it is set."""
    path = page.save(folder / "page.html")
    shots = os.environ.get("SGC_SCREENSHOTS") or str(folder)
    command = [str(PYTHON), str(LOOK), str(path), str(CHROMIUM), shots]
    made = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert made.returncode == 0, made.stderr[-4000:]
    found: dict[str, Any] = json.loads(made.stdout)
    assert found["errors"] == []
    assert {each.partition("?")[0] for each in found["requests"]} == {f"file://{path}"}
    assert found["dialogs"] == 0
    assert found["elements"] == 0
    assert found["background light"] != found["background dark"]
    assert sorted(found["reached"]) == sorted(found["tabs"])
    return found


def write_job(folder: Path, n_rows: int, text: str) -> tuple[Path, Path]:
    """The log and results of a job of two requests a row, with some that failed."""
    log, out = folder / "job.log", folder / "out.jsonl"
    capabilities = json.loads((Path(__file__).parent / "browser" / "backend.json").read_text())
    header = [
        {"kind": "backend", "capabilities": capabilities},
        {"kind": "program", "name": text, "fingerprint": "0" * 64, "seed": 1, "options": {}},
    ]
    with log.open("w") as file:
        file.write('{"sgc_run_log":1}\n')
        file.writelines(json.dumps(each) + "\n" for each in header)
        for row in range(n_rows):
            file.write(
                json.dumps({"kind": "row", "row": str(row), "arguments": {"q": text}}) + "\n"
            )
            for ordinal, name in enumerate(("first", "second")):
                file.write(json.dumps(request(row, ordinal, name, text)) + "\n")
    with out.open("w") as file:
        for row in range(n_rows):
            record: dict[str, Any] = {"key": str(row), "inputs": {"q": f"{row} {text}"}}
            if row % 100 == 50:
                record["error"] = {"type": "ToolError", "message": text}
            else:
                record |= {"text": PROMPT + text, "return": None}
                record["variables"] = {"first": text, f"a.{text[:60]}": f"dotted {row}"}
                record["usage"] = {"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 2}
            file.write(json.dumps(record) + "\n")
    return log, out


def request(row: int, ordinal: int, name: str, text: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 20, "cached_tokens": 8, "computed_tokens": 12, "completion_tokens": 3}
    reply = {
        "text": text[:40], "ids": [], "kept_ids": [], "tail": "", "finish_reason": "stop",
        "matched": None, "usage": usage, "logprobs": None, "extra": {}, "head": "",
    }  # fmt: skip
    return {
        "kind": "generate", "row": str(row), "path": f"p/{text[:20]}", "ordinal": ordinal,
        "number": 0, "name": name, "line": "p.py:3", "fingerprint": "0" * 64,
        "prompt": f"{PROMPT}{row}" + (text[:40] + "\n" if ordinal else ""), "sampling": {},
        "start_s": 10.0 + row + ordinal / 2, "end_s": 10.4 + row + ordinal / 2, "reply": reply,
    }  # fmt: skip


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    found = looked_at(view(*write_job(tmp_path, 200, HOSTILE)), tmp_path)
    assert found["tabs"] == ["overview", "rows", "requests", "prompts"]
    assert "</script><script>alert(1)</script><img src=x" in found["row"]
    assert "U+202E" in found["row"]
    assert "a.</script><script>" in found["titles"]
    assert "dotted 0" in found["cells"]
    assert found["failed_rows"] == 2


def test_ten_thousand_rows(tmp_path: Path) -> None:
    found = looked_at(view(*write_job(tmp_path, 10_000, "a reply of some words")), tmp_path)
    print(json.dumps({name: found[name] for name in ("ready_ms", "drawn_ms")}))
    assert found["failed_rows"] < 100  # 100 of them: drawn are those in sight


def test_a_megabyte_of_text(tmp_path: Path) -> None:
    found = looked_at(view(*write_job(tmp_path, 3, "long \u202e" * 150_000)), tmp_path)
    assert "characters are left out" in found["row"]


def test_two_thousand_nodes(tmp_path: Path) -> None:
    lines = [
        "sgir 1",
        "program @p(%x: text) {",
        "^entry:",
        '  %s0 = stream "p" path="p"',
        '  jump "b0" args=[%s0]',
    ]
    for number in range(400):
        lines += [
            f"^b{number}(%s{number}.1: stream):",
            f'  %s{number}.2 = const %s{number}.1 "{number}"',
            f'  %s{number}.3, %v{number} = gen %s{number}.2 name="v{number}"',
            f'  %t{number}: bool = compute "eq" [%v{number}, "a"]',
            f'  jump "b{number + 1}" args=[%s{number}.3]',
        ]
    lines += ["^b400(%s: stream):", '  publish %s "p" keys=[] items=[]', "  return none", "}"]
    graph = parse("\n".join(lines) + "\n")
    assert graph.n_nodes > 1_600
    found = looked_at(View("p", {"program": program_data(graph)}), tmp_path)
    print(json.dumps({name: found[name] for name in ("ready_ms", "drawn_ms")}))
