"""SGLang's benchmark scripts run unmodified: as a module and by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import argparse
import json
import sys

import sglang as sgl
from sglang.test.test_utils import add_common_sglang_args_and_parse, select_sglang_backend
from sglang.utils import dump_state_text, read_jsonl

from beside import SUFFIX


@sgl.function
def answer(s, question):
    s += sgl.system("Be brief.")
    s += sgl.user(question + SUFFIX)
    s += sgl.assistant(sgl.gen("answer", max_tokens=8, stop="\\n"))


def main(args):
    lines = read_jsonl("questions.jsonl")[: args.num_questions]
    backend = select_sglang_backend(args)
    sgl.set_default_backend(backend)
    backend.flush_cache()
    states = answer.run_batch(
        [{"question": line["question"]} for line in lines],
        temperature=0,
        backend=backend,
        num_threads=args.parallel,
        progress_bar=True,
    )
    dump_state_text(f"tmp_output_{args.backend}.txt", states)
    with open(args.result_file, "a") as out:
        tokens = sum(s.get_meta_info("answer")["completion_tokens"] for s in states)
        value = {"tokens": tokens, "used": backend.token_usage.completion_tokens}
        value |= {"model": backend.get_server_info()["tokenizer_path"], "texts": []}
        value["texts"] += [states[i].text() for i in range(len(states))]
        out.write(json.dumps(value) + "\\n")
    print(sys.argv[0], states[0].ret_value)
    sys.exit(3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-questions", type=int, default=2)
    main(add_common_sglang_args_and_parse(parser))
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "bench.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text('SUFFIX = "?"\n')
    rows = "".join(json.dumps({"question": text}) + "\n" for text in "abc")
    (tmp_path / "questions.jsonl").write_text(rows)
    return tmp_path


def run(folder: Any, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", *words],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


WAYS = {
    "module": ["sgc.compat.sglang"],
    "command": ["sgc", "run", "--as-sglang"],
}


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
def test_a_benchmark_script_runs_unmodified(script, server, way):
    options = ["--port", str(server.port), "--parallel", "4", "--result-file", "r.jsonl"]
    done = run(script, *WAYS[way], "bench.py", *options, "--num-questions", "3")
    assert (done.returncode, done.stdout) == (3, "bench.py None\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert "Unclosed" not in done.stderr
    result = json.loads((script / "r.jsonl").read_text())
    assert result["model"] == server.model
    assert result["used"] == result["tokens"] > 0
    assert [text.count("<|im_start|>user\n") for text in result["texts"]] == [1, 1, 1]
    assert (script / "tmp_output_srt.txt").read_text().count(result["texts"][2]) == 1


SCRIPT_OF_DEFAULT = """
import sys
import sglang as sgl
@sgl.function
def program(s, x):
    s += x + sgl.gen("a", max_tokens=4, temperature=0)
print(sys.argv[1:], program.run("x").text() != "x", sgl.global_config.default_backend.base_url)
"""


@pytest.mark.slow
def test_the_default_backend_of_the_command_line(script, server):
    (script / "default.py").write_text(SCRIPT_OF_DEFAULT)
    address = f"sglang+{server.url}"
    done = run(script, "sgc.compat.sglang", "--engine", address, "default.py", "--seed", "-x")
    assert (done.returncode, done.stdout) == (0, f"['--seed', '-x'] True {server.url}\n")


@pytest.mark.slow
def test_a_script_without_a_server_of_its_own_runs_on_the_command_lines(script, server):
    done = run(script, "sgc", "run", "--as-sglang", "--engine", f"sglang+{server.url}", "bench.py")
    assert done.stderr.count("no server") == 0, done.stderr
    assert json.loads((script / "result.jsonl").read_text())["model"] == server.model


BAD = {
    "no server": ("bench.py --port 1", 1, "bench.py:22: no server at http://127.0.0.1:1"),
    "no key": ("bench.py --backend gpt-4", 1, "no API key for openai\n  set OPENAI_API_KEY"),
    "its own usage": ("bench.py --frobnicate", 2, "unrecognized arguments: --frobnicate"),
    "no script": ("none.py", 1, "sgc: error: none.py: no such file"),
    "no source": ("none.sgir", 2, "expected a Python script"),
    "both": ("--engine unix:x --model fake bench.py", 2, "--model and --engine exclude each other"),
    "address": ("--engine ftp://x bench.py", 2, "unknown server address"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("case", BAD)
def test_errors_are_one_message(script, case):
    words, code, message = BAD[case]
    done = run(script, "sgc.compat.sglang", *words.split(), OPENAI_API_KEY="")
    assert message in done.stderr
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_tracebacks_on_request_and_of_the_scripts_own_errors(script):
    asked = run(script, "sgc.compat.sglang", "bench.py", "--port", "1", SGC_TRACEBACK="1")
    assert "Traceback" in asked.stderr
    assert "sgc: error: bench.py:22" in asked.stderr
    (script / "own.py").write_text("import sglang\n1 / 0\n")
    own = run(script, "sgc.compat.sglang", "own.py")
    assert own.returncode == 1
    assert own.stderr.startswith('Traceback (most recent call last):\n  File "own.py", line 2')
    assert own.stderr.endswith("ZeroDivisionError: division by zero\n")
