"""Last uses: what is marked, and what the engine is told of it."""

from __future__ import annotations

from tests_support import asked, results

import sgc
from sgc.passes.pipeline import optimize
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace


@sgc.function
def talk(s, q):
    s += sgc.user("I ask: " + q)
    s += sgc.assistant(sgc.gen("first", max_tokens=5))
    s += sgc.user("And?")
    s += sgc.assistant(sgc.gen("second", max_tokens=5))
    forks = s.fork(2)
    for i, f in enumerate(forks):
        f += sgc.user(f"Is it {i}?")
        f += sgc.assistant(sgc.select("which", choices=["yes", "no"]))


def test_the_engine_is_told_of_the_streams_own_part(fake_engine: Runtime, monkeypatch):
    """Requests are equal with the hint and without; it lies within the prompt."""
    sent = []
    backend = fake_engine.backend
    ask = backend._ask

    async def note(request, *args, **kwargs):
        sent.append(request)
        return await ask(request, *args, **kwargs)

    monkeypatch.setattr(backend, "_ask", note)
    graph = trace(talk)
    marked = optimize(graph, names=("mark_last",))
    options, arguments = RunOptions(seed=1, temperature=0.0), {"q": "why"}
    plain = sgc.Program(graph).run_once(arguments, options, fake_engine)
    assert not any(request.HasField("reusable") for request in sent)
    sent.clear()
    found = sgc.Program(marked).run_once(arguments, options, fake_engine)
    assert (results(found), asked(found)) == (results(plain), asked(plain))
    told = [request for request in sent if request.HasField("reusable")]
    assert [request.WhichOneof("kind") for request in told] == ["score", "score"]
    for request in told:  # up to its own question, which was the first draw since the fork
        place, segments = request.reusable, request.prompt.segments
        assert place.segment == len(segments) - 1
        assert place.offset == len(segments[-1].text.text)


@sgc.function
def chat(s, q):
    s += "Q: " + q + sgc.gen("first", max_tokens=5)
    s += "\nAnd? " + sgc.gen("second", max_tokens=5)
    s += "\nSo? " + sgc.gen("third", max_tokens=5)


def test_what_may_come_again_ends_where_the_stream_first_drew(fake_engine: Runtime, monkeypatch):
    sent = []
    backend = fake_engine.backend
    ask = backend._ask

    async def note(request, *args, **kwargs):
        sent.append(request)
        return await ask(request, *args, **kwargs)

    monkeypatch.setattr(backend, "_ask", note)
    program = sgc.Program(optimize(trace(chat), names=("mark_last",)))
    program.run_once({"q": "why"}, RunOptions(seed=1), fake_engine)
    assert [request.HasField("reusable") for request in sent] == [False, False, True]
    assert (sent[-1].reusable.segment, sent[-1].reusable.offset) == (0, len("Q: why"))
