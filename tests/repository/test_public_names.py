"""The names that programs import: none is lost or renamed without saying so here."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sgc
from sgc import face

PUBLIC = """
Anthropic BatchFailed ChoicesDecision ChoicesSamplingMethod Function MappedStates OpenAI Program
ProgramState ProgramStateGroup RemoteEngine RunLog RunResult RunState Runtime RuntimeEndpoint
SgcError StreamedText Tool ToolError View assistant assistant_begin assistant_end cached connect
flush_cache function gen gen_int gen_string get_server_info greedy_token_selection image join joint
load record replay role select separate_reasoning set_default_backend system system_begin
system_end table token_length_normalized tool turns unconditional_likelihood_normalized user
user_begin user_end video view
"""
ERRORS = """
ArgumentError BackendError BudgetExceeded CacheError ContextExceeded CutOff DeadlineExceeded
DeoptReached EngineUnavailable GuardError JoinFailed LoadError NonDeterministicProgram NotRecorded
Overloaded ParseError PassFailed ProgramError ProgramRaised RunLogError SgcError SgcWarning
ToolError TraceError TurnsExceeded UnknownOutcome UnknownVariable UnsupportedParameter UsageError
VerifyError
"""
SGLANG = """
sglang sglang.api sglang.backend.anthropic sglang.backend.base_backend sglang.backend.openai
sglang.backend.runtime_endpoint sglang.global_config sglang.lang.api
sglang.lang.backend.base_backend sglang.lang.backend.openai sglang.lang.backend.runtime_endpoint
sglang.lang.chat_template sglang.lang.choices sglang.lang.compiler sglang.lang.interpreter
sglang.lang.ir sglang.lang.tracer sglang.srt.server_args sglang.srt.utils sglang.test.test_utils
sglang.utils
"""


def test_the_public_names_are_these() -> None:
    assert sorted(sgc.__all__) == sorted(PUBLIC.split())
    assert all(hasattr(sgc, name) for name in (*PUBLIC.split(), "map"))


def test_the_face_has_what_is_promised() -> None:
    names = {name for name in vars(face) if not name.startswith("_")} - {"map"}
    assert sorted([*names, "Program", "View", "load", "view"]) == sorted(sgc.__all__)


def test_the_reference_has_every_public_name() -> None:
    pages = (Path(__file__).parents[2] / "docs" / "reference").glob("*.md")
    lines = {line for page in pages for line in page.read_text(encoding="utf-8").splitlines()}
    names = {f"::: sgc.{name}" for name in (*PUBLIC.split(), "map") if name not in ERRORS.split()}
    assert not names - lines


@pytest.mark.parametrize("name", ERRORS.split())
def test_errors_are_where_programs_look_for_them(name: str) -> None:
    assert issubclass(getattr(importlib.import_module("sgc.errors"), name), (Exception, Warning))


def test_sglang_has_the_modules_that_its_programs_import() -> None:
    assert callable(importlib.import_module("sgc.compat.sglang").install)
    found = importlib.import_module("sgc.compat.sglang.modules").all_modules()
    assert set(SGLANG.split()) <= set(found)


def test_a_clone_without_links_says_so(tmp_path: Path) -> None:
    """Git for Windows writes a link as a file that holds where it leads."""
    (tmp_path / "sgc").mkdir()
    shutil.copy(sgc.__file__, tmp_path / "sgc")
    (tmp_path / "sgc" / "ir").write_text("../ir")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import sgc"
    found = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert "ImportError: sgc/ir is a text, not a link" in found.stderr
