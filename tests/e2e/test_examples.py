"""Every example, compiled and interpreted, on the fake and on the default model.

Texts and variables are equal, at -O0 the requests too, greedy and seeded; what is run
through the model is what the requests' tree says, computed here from the requests alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests_support import asked, at_levels, results
from tokenizers import Tokenizer

import sgc
from sgc.programs.function import Function
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.interface.backend import Generated, Prompt, Scored, TextRun
from sgc.runtime.executor.log.timeline import chrome_trace
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import Request, RunResult

ROOT = Path(__file__).resolve().parents[2]
TOKENIZER = Tokenizer.from_file(str(ROOT / "runtime/engine/assets/sgc_tiny/tokenizer.json"))

ARGUMENTS = {
    "tip_suggestion": {"topic": "staying healthy"},
    "essay_judge": {"essay": "Tea is older than paper. It travelled by road and by sea."},
    "few_shot": {"question": "What do cows drink?"},
    "chat": {"first": "What is tea?", "second": "And coffee?"},
    "extract": {"text": "Ada Moor was born in 1970. She bakes bread in York."},
    "react": {"question": "What is 12 times 7?"},
    "router": {"question": "What is the capital of Peru?"},
    "json_retry": {"text": "Ada Moor was born in 1970. She bakes bread in York."},
    "tree_of_thought": {"question": "Ada has 3 eggs and finds 4 more. How many has she now?"},
    "self_consistency": {"question": "Ada has 3 eggs and finds 4 more. How many has she now?"},
    "map_reduce": {
        "chunks": ["Tea is older than paper.", "It travelled by sea.", "Cows eat grass."]
    },
}
TOOLS = {"react": ("search", "calculator")}
# What forced text and healing save, and whole prompts that are asked again, are not counted from
# requests alone.
COUNTED = ["tip_suggestion", "essay_judge", "few_shot", "chat", "react", "router"]
GREEDY = RunOptions(seed=5, temperature=0.0)
SAMPLED = RunOptions(seed=5, temperature=1.0)


def load_module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_example(name: str) -> Function:
    return getattr(load_module(name), name)


def test_every_example_is_tested():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(ARGUMENTS)


# On the default model some, as the rest asks it for nothing of another kind.
ON_DEFAULT = ("tip_suggestion", "essay_judge", "react", "json_retry")


def each_way(names: Iterable[str]) -> pytest.MarkDecorator:
    """Every example greedily on the fake model, and some with draws on the default model."""
    ways = [("fake", GREEDY), ("default", SAMPLED), ("fake", SAMPLED), ("default", GREEDY)]
    cases = []
    for name in names:
        for number, (engine, options) in enumerate(ways):
            is_short = number == 0 or (number == 1 and name in ON_DEFAULT)
            how = "greedy" if options is GREEDY else "seeded"
            marks = () if is_short else pytest.mark.slow
            cases.append(
                pytest.param(name, engine, options, id=f"{name}-{engine}-{how}", marks=marks)
            )
    return pytest.mark.parametrize(("name", "engine", "options"), cases, indirect=["engine"])


@each_way(ARGUMENTS)
def test_compiled_equals_interpreted(engine: Runtime, tmp_path: Path, name, options):
    module, arguments = load_module(name), ARGUMENTS[name]
    function, tools = getattr(module, name), [getattr(module, t) for t in TOOLS.get(name, ())]
    interpreted = function.run_once(arguments, options, engine)
    for made in at_levels(function):
        path = tmp_path / f"{made.level}.sgir"
        made.save(path)
        program = sgc.load(path, allow_tools=tools)
        compiled = program.run_once(arguments, options, engine)
        assert results(compiled) == results(interpreted)
        if made.level == 0:
            assert asked(compiled) == asked(interpreted)
    assert interpreted.text()
    assert all(stream.text for stream in interpreted.streams)


# -- counts ----------------------------------------------------------------------------


def tokenize(prompt: Prompt, text: str = "") -> list[int]:
    """Tokens of a prompt, the last run continued by `text`, by the model's own tokenizer."""
    ids: list[int] = []
    segments = list(prompt)
    if text:
        last = segments[-1] if segments and isinstance(segments[-1], TextRun) else None
        joined = TextRun((last.text if last else "") + text)
        segments = (segments[:-1] if last else segments) + [joined]
    for segment in segments:
        if isinstance(segment, TextRun):
            assert not segment.literal
            ids += TOKENIZER.encode(segment.text, add_special_tokens=not ids).ids
        else:
            ids += segment.ids
    return ids


def fed_sequences(request: Request) -> list[list[int]]:
    """The token sequences a request runs through the model or finds cached."""
    prompt = tokenize(request.prompt)
    if isinstance(request.reply, Generated):
        return [prompt + list(request.reply.ids[:-1])]
    if isinstance(request.reply, Scored):
        return [tokenize(request.prompt, choice)[:-1] for choice in request.choices]
    return [prompt[: request.usage.prompt_tokens]]


def expected_positions(requests: list[Request]) -> int:
    """Distinct token positions of the requests' tree, and one for each request whose whole
    prompt is there already: its last position is run again for logits.
    """
    tree: set[tuple[int, ...]] = set()
    count = 0
    for request in requests:
        sequences = fed_sequences(request)
        positions = {tuple(ids[: i + 1]) for ids in sequences for i in range(len(ids))}
        asks_logits = request.kind != "commit"
        prompt = min((tuple(_shared(sequences)), tuple(tokenize(request.prompt))), key=len)
        count += asks_logits and prompt in tree
        count += len(positions - tree)
        tree |= positions
    return count


def _shared(sequences: list[list[int]]) -> list[int]:
    shared_ids = []
    for column in zip(*sequences, strict=False):
        if len(set(column)) > 1:
            break
        shared_ids.append(column[0])
    return shared_ids


def run_and_count(engine: Runtime, name: str, options: RunOptions) -> tuple[RunResult, int]:
    before = shared.run(engine.backend.stats()).positions_run
    result = load_example(name).compile().run_once(ARGUMENTS[name], options, engine)
    after = shared.run(engine.backend.stats()).positions_run
    return result, after - before


@each_way(COUNTED)
def test_each_shared_prefix_is_computed_once(engine: Runtime, name, options):
    result, positions = run_and_count(engine, name, options)
    assert positions == expected_positions(list(result.requests))
    stats = result.stats
    assert stats.prompt_tokens == stats.cached_tokens + stats.computed_tokens
    fed = sum(len(r.reply.ids) - 1 for r in result.requests if isinstance(r.reply, Generated))
    assert positions == stats.computed_tokens + fed


@pytest.mark.parametrize("engine", ["fake"], indirect=True)
@pytest.mark.parametrize("name", COUNTED)
def test_a_second_run_computes_only_what_is_new(engine: Runtime, name):
    """Greedy, so that the second run asks the very same: only what gives logits runs again."""
    run_and_count(engine, name, GREEDY)
    second, _ = run_and_count(engine, name, GREEDY)
    n_logits = sum(request.kind != "commit" for request in second.requests)
    n_choices = sum(_choice_positions(request) for request in second.requests)
    assert second.stats.computed_tokens == n_logits + n_choices


def _choice_positions(request: Request) -> int:
    if not isinstance(request.reply, Scored):
        return 0
    scored = [choice.ids for choice in request.reply.choices]
    return len({ids[:i] for ids in scored for i in range(1, len(ids))})


def test_the_streams_of_tip_suggestion_overlap(engine: Runtime):
    result, _ = run_and_count(engine, "tip_suggestion", SAMPLED)
    events = [e for e in chrome_trace(result)["traceEvents"] if e.get("name") == "paragraph"]
    first, second = sorted(events, key=lambda event: event["ts"])
    assert first["tid"] != second["tid"]
    assert second["ts"] < first["ts"] + first["dur"]
