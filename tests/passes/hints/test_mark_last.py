"""Last uses: what is marked, and what the engine is told of it."""

from __future__ import annotations

import pytest
from pass_cases import check_case
from tests_support import asked, results

import sgc
from sgc.passes.pipeline import optimize
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

CASES = {
    "the last generation of each stream, whatever is read of it": (
        """
        %s = stream "p"
        %s1, %a = gen %s
        %s2, %b = gen_n %s1 2
        %s3 = const %s2 "."
        %t = stream "q" path="p/q.0"
        %t1 = append_span %t %s1 %s3
        %t2, %c = select %t1 choices=["x", "y"]
        %u = text_of %s3
        publish %s3 "p"
        return %u
        """,
        """
        %s = stream "p"
        %s1, %a = gen %s
        %s2, %b = gen_n %s1 2 last=true
        %s3 = const %s2 "."
        %t = stream "q" path="p/q.0"
        %t1 = append_span %t %s1 %s3
        %t2, %c = select %t1 choices=["x", "y"] last=true
        %u = text_of %s3
        publish %s3 "p"
        return %u
        """,
    ),
    "what a fork commits is asked with, and one child's is not": (
        """
        %s = stream "p"
        %s1, %a = gen %s
        %s2, %c0, %c1 = fork %s1 2
        %s3, %b = gen %s2
        %s4, %d = fork %s3 1
        return %b
        """,
        """
        %s = stream "p"
        %s1, %a = gen %s
        %s2, %c0, %c1 = fork %s1 2
        %s3, %b = gen %s2 last=true
        %s4, %d = fork %s3 1
        return %b
        """,
    ),
    "a stream that shares the generation goes on from it": (
        """
        %s = stream "p"
        %s1, %a = gen %s temperature=0.0
        %t = stream "q" path="p/q.0"
        %t1, %b: text = share %t %s %s1 %a
        %t2, %c = gen %t1
        return %c
        """,
        """
        %s = stream "p"
        %s1, %a = gen %s temperature=0.0
        %t = stream "q" path="p/q.0"
        %t1, %b: text = share %t %s %s1 %a
        %t2, %c = gen %t1 last=true
        return %c
        """,
    ),
    "a loop comes back to what it asked; its end does not": (
        """
        %s = stream "p"
        jump "turn" args=[%s]
        ^turn(%t: stream):
        %t1, %a = gen %t
        branch %ok then="back" orelse="end"
        ^back:
        jump "turn" args=[%t1]
        ^end:
        %t2, %c = gen %t1
        return %c
        """,
        """
        %s = stream "p"
        jump "turn" args=[%s]
        ^turn(%t: stream):
        %t1, %a = gen %t
        branch %ok then="back" orelse="end"
        ^back:
        jump "turn" args=[%t1]
        ^end:
        %t2, %c = gen %t1 last=true
        return %c
        """,
    ),
    "what a fork commits is asked with, though nothing goes on from there": (
        """
        %s = stream "p"
        %s1, %a = gen %s
        %s2, %c0, %c1 = fork %s1 2
        return %a
        """,
        None,
    ),
    "what is handed on is asked with": (
        """
        %s = stream "p"
        %s1, %a = gen %s
        jump "b" args=[%s1]
        ^b(%t: stream):
        %t1, %b = gen %t
        return %b
        """,
        """
        %s = stream "p"
        %s1, %a = gen %s
        jump "b" args=[%s1]
        ^b(%t: stream):
        %t1, %b = gen %t last=true
        return %b
        """,
    ),
    "what is prefetched behind it is asked with": (
        """
        %s = stream "p"
        %s1, %a = gen %s
        prefetch kinds=["const"] pieces=["long"] stream=%s1
        %s2, %b = gen %s1
        return %b
        """,
        """
        %s = stream "p"
        %s1, %a = gen %s
        prefetch kinds=["const"] pieces=["long"] stream=%s1
        %s2, %b = gen %s1 last=true
        return %b
        """,
    ),
    "what is prefetched behind it alone is asked with": (
        """
        %s = stream "p"
        %s1, %a = gen %s
        prefetch kinds=["const"] pieces=["long"] stream=%s1
        return %a
        """,
        None,
    ),
    "refused: one way goes on, and the interpreter may": (
        """
        %s = stream "p"
        %s1, %a = gen %s
        branch %ok then="on" orelse="end"
        ^on:
        deopt "more than 256 paths"
        ^end:
        return %a
        """,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_mark_last(case):
    check_case("mark_last", *CASES[case])


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
