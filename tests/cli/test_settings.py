"""`sgc.toml`, `[tool.sgc]`, `--env-file`: what a file may say, and what it may not."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from cli.conftest import TIP

from sgc.cli.settings.config import find_config
from sgc.cli.settings.env_file import take_env_file
from sgc.errors import UsageError


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """What a test's env file sets is gone after it."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]


# A folder from anyone may not say where keys go, load code or write elsewhere.
HOSTILE = {
    "a server with OpenAI's API": ('engine = "openai+http://evil.example/v1#m"', "sgc.toml:2: engine: a file may name"),
    "an engine": ('engine = "grpc://evil.example:1"', "sgc.toml:2: engine"),
    "several": ('engine = "openai:a,openai+http://evil.example#m"', "sgc.toml:2: engine"),
    "a socket": ('engine = "unix:/tmp/x"', "sgc.toml:2: engine"),
    "an address in a model": ('engine = "openai:m#http://evil.example"', "sgc.toml:2: engine"),
    "no text": ("engine = 3", "sgc.toml:2: engine: expected a text, found 3"),
    "tools": ('tools = ["evil.py"]', "sgc.toml:2: 'tools' is no setting that a file may have"),
    "variables": ('env-file = ".env"', "sgc.toml:2: 'env-file' is no setting"),
    "a table": ('[env]\nOPENAI_BASE_URL = "http://evil.example"', "sgc.toml:2: 'env' is no setting"),
    "spans": ('otlp = "http://evil.example"', "sgc.toml:2: 'otlp' is no setting"),
    "a folder above": ('cache-dir = "../x"', "sgc.toml:2: cache-dir: expected a folder below"),
    "a folder elsewhere": ('cache-dir = "/tmp/x"', "sgc.toml:2: cache-dir: expected a folder below"),
    "a typing error": ("temprature = 0", "Did you mean 'temperature'?"),
    "a wrong number": ("temperature = true", "sgc.toml:2: temperature: expected a number of 0 or more"),
    "a level": ("opt-level = 9", "sgc.toml:2: opt-level: expected 0, 1, 2 or 3, found 9"),
    "both": ('model = "a"\nengine = "openai:b"', "sgc.toml:3: engine and model exclude"),
    "no TOML": ("model = ", "sgc.toml: not valid TOML: Invalid value (at line 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_may_set_only_what_is_harmless(sgc_command, tmp_path, case):
    text, message = HOSTILE[case]
    (tmp_path / "sgc.toml").write_text(f"# mine\n{text}\n")
    code, out, err = sgc_command("run", TIP, "--arg", "topic=tea")
    assert (code, out) == (2, "")
    assert message in err
    assert "--no-config" in err


def test_the_line_of_a_project_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.x]\nseed = 1\n[tool.sgc]\n# c\nsed = 1\n")
    with pytest.raises(UsageError, match=r"pyproject\.toml:5: 'sed' .*Did you mean 'seed'"):
        find_config(tmp_path)


def test_the_closest_file_counts_up_to_the_repository(tmp_path):
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "sgc.toml").write_text("seed = 1")
    assert find_config(inner).values == {"seed": 1}
    (tmp_path / "repo" / ".git").mkdir()
    assert find_config(inner) is None
    (tmp_path / "repo" / "pyproject.toml").write_text("[tool.sgc]\nseed = 2")
    assert find_config(inner).values == {"seed": 2}
    (tmp_path / "repo" / "sgc.toml").write_text('seed = 3\nmodel = "./m"')
    found = find_config(inner)
    assert found.values == {"seed": 3, "model": str(tmp_path / "repo" / "m")}
    assert found.place("model") == f"{found.path}:2"


def test_the_file_of_another_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / "sgc.toml").write_text("seed = 1")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    monkeypatch.setattr(Path, "stat", lambda self, **_: os.stat_result((33188, *[12345] * 3, 99, *[9] * 5)))  # fmt: skip
    monkeypatch.setattr(Path, "is_file", lambda self: self.name == "sgc.toml")
    with pytest.raises(UsageError, match="belongs to another user"):
        find_config(tmp_path)


def test_settings_are_defaults_and_are_told_of(sgc_command, tmp_path, on_fake):
    (tmp_path / "sgc.toml").write_text('seed = 7\nmodel = "nobody/has-this"\nmax-cost = 3\n')
    run = ("run", TIP, "-a", "topic=tea")
    _, _, err = sgc_command(*run, *on_fake, "-v")  # the engine given leaves the file's model out
    assert "seed 7" in err
    assert f"sgc: config: {tmp_path / 'sgc.toml'}" in err
    assert "sgc: config: seed=7" in err
    assert "sgc: engine: " in err
    assert "sgc: run: " in err
    assert "seed 8" in sgc_command(*run, *on_fake, "--seed", "8")[2]
    assert "seed 7\n" not in sgc_command(*run, *on_fake, "--no-config")[2]
    (tmp_path / "other.toml").write_text("seed = 9")
    assert "seed 9" in sgc_command("--config", "other.toml", *run, *on_fake)[2]


def test_a_compiler_takes_the_level_alone(sgc_command, tmp_path):
    """Its --for is a parameter called model, too."""
    (tmp_path / "sgc.toml").write_text('model = "nobody/has-this"\nopt-level = 0\n')
    code, _, err = sgc_command("compile", TIP, "-v", "-o", "t.sgir")
    assert code == 0, err
    assert "sgc: config: level=0\n" in err


def test_a_provider_of_a_file_is_told_of(sgc_command, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "sgc.toml").write_text('engine = "openai:gpt-4o"\n')
    code, _, err = sgc_command("run", TIP, "-a", "topic=tea")
    assert code == 2
    assert f"sgc: asks openai:gpt-4o, as {tmp_path / 'sgc.toml'}:1 says" in err
    assert "OPENAI_API_KEY" in err


def test_variables_come_from_a_file_that_is_named(sgc_command, tmp_path, monkeypatch):
    monkeypatch.setenv("SGC_T_HAD", "mine")
    (tmp_path / ".env").write_text(
        "# keys\nexport SGC_T_A=one # c\nSGC_T_B='a #b'\nSGC_T_C=\"x\\ny\"\nSGC_T_HAD=its\n"
        "SGC_T_BASE_URL=https://u:secret@host.example/v1\nSGC_T_D=  # later\nSGC_T_E=#1\n"
    )
    sgc_command("version")
    assert "SGC_T_A" not in os.environ  # never unasked
    _, _, err = sgc_command("verify", "nothing.sgir", "--env-file", ".env", "-v")
    values = [os.environ[f"SGC_T_{name}"] for name in ("A", "B", "C", "D", "E", "HAD")]
    assert values == ["one", "a #b", "x\ny", "", "#1", "mine"]
    assert ".env sets SGC_T_A, SGC_T_B, SGC_T_C, SGC_T_BASE_URL, SGC_T_D, SGC_T_E" in err
    assert ".env does not set SGC_T_HAD" in err
    assert ".env sets SGC_T_BASE_URL: keys go to host.example" in err
    assert "secret" not in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=1\nB", "env:2: expected NAME=VALUE"),
        ("A='x", "env:1: a quote"),
        ("A=1\nB=\0", "env:2: expected NAME=VALUE"),
        (None, "env: No such"),
    ],
)
def test_a_file_of_variables_that_is_none(tmp_path, text, message):
    path = tmp_path / "env"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=message):
        take_env_file(path)


def test_files_of_settings_are_bounded_whatever_they_are(sgc_command, tmp_path):
    for option in ("--env-file", "--config"):
        read, write = os.pipe()  # of which no size is told
        writer = threading.Thread(target=_write_more, args=(write,))
        writer.start()
        pipe = f"/dev/fd/{read}"
        code, _, err = sgc_command("run", TIP, "-a", "topic=tea", option, pipe)
        os.close(read)
        writer.join()
        assert (code, f"{pipe}: more than 1,048,576 bytes" in err) == (2, True), err
    gc.collect()  # finalizers of other tests' garbage would fail at the depth that comes
    (tmp_path / "sgc.toml").write_text("a = " + "[" * 20_000)
    code, _, err = sgc_command("run", TIP, "-a", "topic=tea")
    assert (code, "sgc.toml: not valid TOML: " in err) == (2, True), err


def _write_more(pipe: int) -> None:
    with suppress(BrokenPipeError), os.fdopen(pipe, "wb") as file:
        file.write(b"#" * (1 << 21))
