"""What users and replies can do to a run from outside: exits, files, patterns, schemas."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest
from waiting import BOUND_S, until

import sgc
from sgc.errors import ArgumentError, ProgramError, SgcError, UnsupportedParameter, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.backend import Generated, Usage
from sgc.runtime.executor.interface.media import MAX_MEDIA_BYTES, load_media, load_video
from sgc.runtime.executor.patterns import timed_regex
from sgc.runtime.executor.patterns.checked_constraints import MAX_TRIES, ConstraintFailed
from sgc.runtime.executor.patterns.schemas import schema_check
from sgc.runtime.executor.patterns.timed_regex import Pattern
from sgc.runtime.executor.run.options import RunOptions, decide_sampling
from sgc.runtime.executor.run.record import RunResult

PNG = b"\x89PNG\r\n\x1a\n rest"


class Free(ScriptedBackend):
    """Cannot decode under a constraint; replies in the given order, the last one for ever."""

    def __init__(self, *replies: str) -> None:
        super().__init__(lambda prompt, sampling: self._next())
        self.replies = list(replies)
        self.samplings: list[Any] = []

    def _next(self) -> str:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def capabilities(self):
        return replace(CAPABILITIES, refuses=frozenset({"regex", "json_schema"}))

    async def generate(self, prompt, sampling, on_delta=None) -> Generated:
        self.samplings.append(sampling)
        reply = await super().generate(prompt, sampling, on_delta)
        return replace(reply, usage=Usage(10, 0, 10, 5))


def ask(backend: Any, options: RunOptions | None = None, **parameters: Any) -> RunResult:
    """The run of a program of one generation."""

    @sgc.function
    def one(s):
        s += "a" + sgc.gen("x", **parameters)

    graph = one.compile(check=False).graph
    return asyncio.run(asyncio.wait_for(run_graph(graph, backend, {}, options), BOUND_S))


# -- what is no Exception --

EXITS = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]


@sgc.function
def simple(s):
    s += "a" + sgc.gen("x")


def within(call: Any) -> Any:
    """What the call gives or raises; it is an error that it hangs."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    threading.Thread(target=work, daemon=True).start()
    until(lambda: found)
    return found[0]


def assert_failed_by(failed: Any, error: BaseException) -> None:
    assert type(failed) is ProgramError
    assert type(failed.__cause__) is type(error)
    assert failed.where.startswith("test_strangers.py:")
    # Other runs go on, which need the same event loop.
    endpoint = Endpoint(Free("r"))
    assert within(lambda: simple.run(backend=endpoint).text()) == "ar"


@pytest.mark.parametrize("error", EXITS, ids=repr)
@pytest.mark.parametrize("shown", ["a", "r"])
def test_an_exit_in_a_callback_fails_the_run_alone(error, shown):
    def on_text(node: Any, path: str, text: str) -> None:
        if text == shown:
            raise error

    endpoint = Endpoint(Free("r"))
    failed = within(lambda: simple.run(backend=endpoint, on_text=on_text).error())
    assert_failed_by(failed, error)


@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_in_a_choices_method_fails_the_run_alone(error):
    class Method(sgc.ChoicesSamplingMethod):
        def __call__(self, **scores: Any) -> Any:
            raise error

    @sgc.function
    def choose(s):
        s += sgc.select("c", ["a", "b"], choices_method=Method())

    endpoint = Endpoint(ScriptedBackend(lambda prompt, sampling: ""))
    assert_failed_by(within(lambda: choose.run(backend=endpoint).error()), error)


@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_in_a_commit_fails_the_run_alone(error):
    class Leaving(Free):
        async def commit_prefix(self, prompt, heads=()) -> Usage:
            raise error

    @sgc.function
    def forked(s):
        s += "a"
        group = s.fork(2)
        group += sgc.gen("x")

    assert_failed_by(within(lambda: forked.run(backend=Endpoint(Leaving("r"))).error()), error)


# -- files --


def test_a_file_is_read_if_it_is_one(tmp_path):
    (tmp_path / "i.png").write_bytes(PNG)
    assert load_media(tmp_path / "i.png").data == PNG
    (tmp_path / "link.png").symlink_to(tmp_path / "i.png")
    assert load_media(str(tmp_path / "link.png")).data == PNG


@pytest.mark.parametrize("load", [load_media, lambda path: load_video(path, 2)])
def test_pipes_devices_and_folders_are_refused(tmp_path, load):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a pipe"), ("/dev/zero", "a device")):
        failed = within(lambda path=path: load(path))
        assert isinstance(failed, ArgumentError)
        assert f"it is {kind}" in str(failed)
    with pytest.raises(ArgumentError, match="it is a directory"):
        load(tmp_path)


def test_paths_that_are_none():
    with pytest.raises(ArgumentError, match="No such file"):
        load_media("/no/such.png")
    with pytest.raises(ArgumentError, match="null"):
        load_media("a\0b")


def test_a_file_is_read_no_further_than_it_may_be(tmp_path):
    with open(tmp_path / "big.png", "wb") as file:
        file.truncate(MAX_MEDIA_BYTES + 1)
    with pytest.raises(ArgumentError, match="the most that are taken"):
        load_media(tmp_path / "big.png")


def test_images_are_read_off_the_event_loop_and_in_order(monkeypatch, tmp_path):
    from sgc.runtime.executor.ops import handlers

    threads, turned = [], threading.Event()

    def slow(value: Any) -> Any:
        threads.append(threading.current_thread())
        assert not value.endswith("1.png") or turned.wait(BOUND_S)
        return load_media(value)

    @sgc.function
    def two(s, a, b):
        s += sgc.user("x" + sgc.image(a) + "y" + sgc.image(b) + "z") + sgc.gen("g")

    paths = [tmp_path / "1.png", tmp_path / "2.png"]
    for path in paths:
        path.write_bytes(PNG + path.name.encode())
    graph = two.compile(check=False).graph
    monkeypatch.setattr(handlers, "load_media", slow)
    arguments = dict(zip("ab", map(str, paths), strict=True))

    async def run() -> RunResult:
        work = asyncio.ensure_future(run_graph(graph, Free("r"), arguments))
        while not threads and not work.done():
            await asyncio.sleep(0.005)
        turned.set()  # the loop turns while the first is read
        return await work

    result = asyncio.run(run())
    assert result.text() == "<|user|>x<image>y<image>z<|end|>r"
    media = [run.media.data[-5:] for run in result.requests[0].prompt if hasattr(run, "media")]
    assert media == [b"1.png", b"2.png"]
    assert threading.main_thread() not in threads


# -- patterns --


def test_a_pattern_that_takes_for_ever_is_an_error_and_stops_no_other_run():
    async def both() -> Any:
        @sgc.function
        def slow(s):
            s += "a" + sgc.gen("x", regex="(a|aa)+b?$")

        graph, other = slow.compile(check=False).graph, simple.compile(check=False).graph
        work = asyncio.ensure_future(run_graph(graph, Free("a" * 60 + "!"), {}))
        await asyncio.sleep(0.2)
        await run_graph(other, Free("r"), {})
        assert not work.done(), "the other run had to wait for it"
        return (await asyncio.gather(work, return_exceptions=True))[0]

    failed = asyncio.run(asyncio.wait_for(both(), BOUND_S))
    assert type(failed) is UsageError
    assert "cannot be checked" in str(failed)
    assert failed.where.startswith("test_strangers.py:")


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(" * 3000 + ")" * 3000, "[z-a]"])
def test_a_pattern_that_is_none_is_an_error_before_anything_is_asked(pattern):
    @sgc.function
    def given(s, pattern: str):
        s += "a" + sgc.gen("x", regex=pattern)

    backend = Free("r")
    graph = given.compile(check=False).graph
    with pytest.raises(UsageError, match="is invalid"):
        asyncio.run(run_graph(graph, backend, {"pattern": pattern}))
    assert backend.samplings == []


@pytest.mark.parametrize(
    "pattern", ["((a{1000}){1000}){1000}", "(?:a{500}b){201}", "a{9999999999}"]
)
def test_repeats_that_would_fill_the_memory_are_refused(pattern):
    with pytest.raises(UsageError, match="repeats too much"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\d{4}-\d{2}", "2024-05"),
        ("a{e}", "a{e}"),  # the package's inexact matching is no part of `re`
        (r"\{e\}[{}]{2}", "{e}{}"),
        (r"a{,2}b{0}(x|y){1,1000}", "aaxyx"),
        (r"[^]a]\]" + "(ab){3}" * 100, "b]" + "ababab" * 100),
        (r"\\{e<=1}", r"\{e<=1}"),
    ],
)
def test_patterns_mean_what_they_mean_in_re(pattern, text):
    assert Pattern(pattern).is_whole(text)
    assert not Pattern(pattern).is_whole(text + "\n")


def test_the_package_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(SgcError, match="pip install regex"):
        ask(Free("r"), regex="never compiled [0-9]")


# -- schemas --


@sgc.function
def of_schema(s, schema):  # as an argument, or compiling would look at it first
    s += "a" + sgc.gen("x", json_schema=schema)


def check(schema: Any, reply: str) -> str:
    graph = of_schema.compile(check=False).graph
    run = run_graph(graph, Free(reply), {"schema": json.dumps(schema)}, None)
    return str(asyncio.run(asyncio.wait_for(run, BOUND_S))["x"])


@pytest.mark.parametrize("ref", ["http://127.0.0.1:1/s.json", "FILE", "#/nope", "other.json"])
def test_nothing_is_fetched(tmp_path, ref):
    (tmp_path / "s.json").write_text('{"type": "integer"}')
    ref = (tmp_path / "s.json").as_uri() if ref == "FILE" else ref
    with pytest.raises(UsageError, match=r"refers to .* not in it") as caught:
        check({"$ref": ref}, "42")
    assert ref.removeprefix("#") in str(caught.value)


def test_references_inside_work():
    schema = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}
    assert check(schema, "42") == "42"
    with pytest.raises(ConstraintFailed):
        check(schema, '"x"')


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("5", "an object or a bool"),
        ("[]", "an object or a bool"),
        ('"x"', "an object or a bool"),
        ("null", "an object or a bool"),
        ("{", "is invalid"),
        ("[" * 100_000, "is invalid"),
        ('{"type": "nope"}', "is invalid"),
        ('{"pattern": "("}', "is invalid"),
        ('{"$schema": 5}', "is invalid"),
        ('{"$schema": ["a"]}', "is invalid"),
        ('{"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}', "top"),
        ('{"patternProperties": {}, "allOf": [{"unevaluatedProperties": false}]}', "both"),
    ],
)
def test_schemas_that_are_none(schema, words):
    with pytest.raises(UsageError, match=words):
        schema_check(schema)


@pytest.mark.parametrize(
    ("schema", "reply"), [({}, "[" * 100_000), ({"$ref": "#"}, "1"), ({}, "1" * 10_000)]
)
def test_a_reply_that_is_too_deep_is_a_failed_try(schema, reply):
    backend = Free(reply)
    with pytest.raises(ConstraintFailed):
        ask(backend, json_schema=json.dumps(schema))
    assert len(backend.samplings) == MAX_TRIES


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"k": {"pattern": "^(a|aa)+$"}}},
        {"patternProperties": {"^(a|aa)+$": False}},
        {"patternProperties": {"^(a|aa)+$": True}, "additionalProperties": False},
    ],
)
def test_patterns_in_a_schema_cannot_take_for_ever(schema, monkeypatch):
    monkeypatch.setattr(timed_regex, "TIMEOUT_S", 0.1)
    meets = schema_check(json.dumps(schema))
    hard = "a" * 60 + "!"
    failed = within(lambda: meets(json.dumps({"k": hard, hard: 1})))
    assert type(failed) is UsageError
    assert "cannot be checked" in str(failed)


def test_keywords_with_patterns_check_what_jsonschema_checks():
    import jsonschema

    parts = [
        {"properties": {"a": {"pattern": "^x"}}},
        {"patternProperties": {"^[ab]$": {"type": "string"}, "z": False}},
        {"additionalProperties": False},
        {"additionalProperties": {"type": "integer"}},
        {"additionalProperties": True},
    ]
    values = [{}, 3, "x", {"a": "x"}, {"a": "y"}, {"b": 1}, {"c": 1}, {"c": "x"}, {"z": 1}]
    values += [{"a": "x", "b": "x", "c": 1}]
    schemas = [{**first, **second} for first in parts for second in parts]
    for schema in schemas:
        meets = schema_check(json.dumps(schema))
        plain = jsonschema.Draft202012Validator(schema)
        assert [meets(json.dumps(v)) for v in values] == [plain.is_valid(v) for v in values]


def test_a_pattern_and_a_schema_cannot_both_be_checked():
    from sgc.runtime.executor.interface.backend import Sampling
    from sgc.runtime.executor.patterns.checked_constraints import plan_constraint

    capabilities = asyncio.run(Free("r").capabilities())
    with pytest.raises(UnsupportedParameter, match="at once"):
        plan_constraint(Sampling(1, regex="a", json_schema="{}"), capabilities)
    with pytest.raises(UsageError, match="regex must be a text"):
        plan_constraint(Sampling(1, regex=5), capabilities)  # type: ignore[arg-type]


# -- every try counts --


def test_tries_that_were_thrown_away_are_counted_with_what_they_were_asked_with():
    backend = Free("no", "nor", "42")
    result = ask(backend, RunOptions(seed=1), regex="[0-9]+", temperature=0.0)
    assert [request.sampling for request in result.requests] == backend.samplings
    assert [request.sampling.temperature for request in result.requests] == [0.0, 1.0, 1.0]
    assert [request.is_used for request in result.requests] == [False, False, True]
    assert [request.reply.text for request in result.requests] == ["no", "nor", "42"]
    assert (result.stats.requests, result.stats.prompt_tokens) == (3, 30)
    assert result.stats.completion_tokens == 15
    meta = result.get_meta_info("x")
    assert (meta["prompt_tokens"], meta["completion_tokens"]) == (10, 5)


def test_meta_info_of_an_interpreted_run_is_that_of_the_used_reply():
    state = _digits.run(backend=Endpoint(Free("no", "42")))
    assert state["x"] == "42"
    assert state.get_meta_info("x")["completion_tokens"] == 5


@sgc.function
def _digits(s):
    s += "a" + sgc.gen("x", regex="[0-9]+")


def test_several_texts_are_recorded_with_their_own_seeds():
    backend = Free("no", "1", "2")
    result = ask(backend, RunOptions(n=2), regex="[0-9]+")
    assert [request.sampling for request in result.requests] == backend.samplings
    assert result["x"] == ["1", "2"]
    assert len(result.get_meta_info("x")) == 2
    plain = ask(Free("r"), RunOptions(n=3))
    assert len({request.sampling.seed for request in plain.requests}) == 3


# -- options --

WRONG_LISTS = [
    ("stop", 5), ("stop", [None]), ("stop", [""]), ("stop", b"ab"), ("stop", {"a": 1}),
    ("stop_regex", 5), ("stop_regex", ["a", 3]),
    ("stop_token_ids", 5), ("stop_token_ids", "ab"), ("stop_token_ids", [None]),
    ("stop_token_ids", [True]), ("stop_token_ids", [-1]), ("stop_token_ids", [1.0]),
    ("stop_token_ids", [2**31]), ("stop_token_ids", {3: 4}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given"), WRONG_LISTS)
def test_stops_of_a_wrong_type(name, given):
    with pytest.raises(UsageError, match=f"{name} must be"):
        RunOptions(**{name: given})
    with pytest.raises(UsageError, match=f"{name} must be"):
        decide_sampling({name: given}, RunOptions())


def test_stops_are_kept_as_tuples():
    options = RunOptions(stop="a", stop_regex=["b", "c"], stop_token_ids=[1, 2])  # type: ignore[arg-type]
    assert (options.stop, options.stop_regex, options.stop_token_ids) == (
        ("a",), ("b", "c"), (1, 2),
    )  # fmt: skip
    sampling = decide_sampling({"stop": ["x"], "stop_token_ids": [3]}, options, ("chat",))
    assert (sampling.stop, sampling.stop_token_ids) == (("x", "chat"), (3,))
    assert hash(options) == hash(
        RunOptions(**{"stop": ("a",), "stop_regex": ("b", "c")}, stop_token_ids=(1, 2))
    )
