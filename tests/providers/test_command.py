"""`sgc run --engine` with providers: what is printed, and what is wrong with a command."""

from __future__ import annotations

import json

import pytest
from providers.conftest import KEY

from sgc.cli import main

PROGRAM = """
import sgc

@sgc.function
def tip(s, topic: str):
    s += "A tip for " + topic + ":" + sgc.gen("tip", max_tokens=8)
"""


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Runs `sgc run tip.py --arg topic=tea` and more: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "tip.py").write_text(PROGRAM)

    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["run", "tip.py", "--arg", "topic=tea", *argv])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def test_a_run_tells_what_it_cost(serve, command, monkeypatch):
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
    code, out, err = command("--engine", "openai:gpt-4o", "--json", "--max-cost", "1")
    assert code == 0
    found = json.loads(out)
    assert found["text"] == "A tip for tea: reply 14"
    assert found["stats"]["cost_usd"] == found["stats"]["by_request"][0]["cost_usd"] > 0
    code, out, err = command("--engine", "openai:gpt-4o")
    assert "$" in err
    assert KEY not in out + err


def test_a_budget_that_is_too_small_asks_nothing(serve, command, monkeypatch):
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
    code, _, err = command("--engine", "openai:gpt-4o", "--max-cost", "0.000001")
    assert code == 1
    assert "tip.py:6" in err
    assert "the next request may cost" in err
    assert server.asks == []


def test_a_compatible_server_is_asked_what_it_serves(serve, command):
    server = serve(owned_by="vllm")
    code, out, _ = command("--engine", f"openai+{server.url}/v1", "-q", "--rpm", "100", "-j", "2")
    assert (code, out) == (0, "A tip for tea: reply 14\n")
    assert server.bodies[0]["model"] == "served"


def test_an_address_without_the_path_of_the_api_is_told(serve, command):
    code, _, err = command("--engine", f"openai+{serve().url}")
    assert (code, "most end in /v1" in err) == (1, True)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--engine", "openai:gpt-4o"], "no API key for openai"),
        (["--max-cost", "1"], "--max-cost is for model providers"),
        (["--engine", "sglang+http://127.0.0.1:1", "--request-timeout", "1"], "-timeout is for"),
        (["--engine", "typo:x"], "openai:MODEL"),
    ],
)
def test_a_wrong_command_is_told(command, argv, words):
    code, out, err = command(*argv)
    assert (code, out) == (2, "")
    assert words in err


KEEPING = """
import sgc

@sgc.function
def fan(s, text: str):
    s += sgc.system("All that is known is told here. " * 400) + sgc.user(text)
    for number, part in enumerate(s.fork(3)):
        part += sgc.user(f"{number}?") + sgc.assistant(sgc.gen("a", max_tokens=8))
"""


def test_a_plan_for_a_model_can_be_compiled_in(serve, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fan.py").write_text(KEEPING)

    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(argv))
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    model = ("--for", "anthropic:claude-opus-5", "--rows", "9")
    assert run("compile", "fan.py", "-o", "plain.sgir")[0] == 0
    assert run("compile", "fan.py", "-o", "kept.sgir", *model)[0] == 0
    code, out, err = run("opt", "plain.sgir", "-p", "place_caches", *model)
    assert code == 0
    assert err.startswith("place_caches (preserves requests, ")
    assert out.count(" = cache ") == 2
    assert run("dump", "kept.sgir")[1].splitlines()[1:] == out.splitlines()[1:]
    code, out, err = run("opt", "plain.sgir", "-p", "place_caches")
    assert (code, "--for anthropic:MODEL" in err) == (2, True)
    code, out, err = run("compile", "fan.py", "--for", "anthropic:claude-2")
    assert (code, "nothing is known of a prompt cache of claude-2" in err) == (2, True)
    # What was compiled in is what is sent, and counts are what the provider says.
    server = serve(usage={"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 4000,
                          "cache_creation_input_tokens": 100})  # fmt: skip
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    code, out, err = run("run", "kept.sgir", "--arg", "text=Hello?", "--json",
                         "--engine", "anthropic:claude-opus-5")  # fmt: skip
    assert code == 0
    assert all(body["system"][0]["cache_control"] for body in server.bodies)
    stats = json.loads(out)["stats"]
    assert (stats["cached_tokens"], stats["cache_written_tokens"]) == (12000, 300)
    asked = [row for row in stats["by_request"] if row["kind"] == "generate"]
    assert [row["cached_tokens"] for row in asked] == [4000] * 3
