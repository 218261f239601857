"""States and groups (FRONTEND 1.4)."""

from __future__ import annotations

import asyncio
import threading
import warnings

import pytest
from tests_support import run_both

import sgc
from sgc import errors
from sgc.errors import SgcWarning

pytestmark = pytest.mark.timeout(20)


def _by_length(text, sampling):
    return f"<{len(text)}>"


@sgc.function
def simple(s, x):
    s += "ask " + x
    s += sgc.gen("a")
    s += "."
    return "done"


# -- appending -----------------------------------------------------------------------------


def test_append_of_texts_and_expressions(recorded):
    @sgc.function
    def program(s):
        s += "a"
        s += sgc.gen("g")
        s += "b" + sgc.gen("h") + "c"
        s += sgc.gen("i") + "d"

    assert run_both(program, recorded(_by_length)).text() == "a<1>b<5>c<9>d"


@pytest.mark.parametrize("value", [None, 5, 1.5, ["a"], object()])
def test_append_of_anything_else_is_an_error_at_its_line(recorded, value):
    """SGLang raises for None only; other kinds fail in its worker thread."""

    @sgc.function
    def program(s):
        s += value

    with pytest.raises(errors.UsageError, match="only text and expressions") as caught:
        program.run(backend=recorded())
    assert caught.value.where.startswith("test_state.py:")


# -- variables -----------------------------------------------------------------------------


def test_reading_a_variable_waits_for_it(recorded, within):
    gate = threading.Event()
    state = simple.run("x", backend=recorded("r", gate=gate))
    reader = threading.Thread(target=lambda: found.append(state["a"]), daemon=True)
    found: list[str] = []
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    gate.set()
    reader.join(10)
    assert found == ["r"]


def test_reading_an_unknown_variable_is_a_key_error_at_once(recorded):
    gate = threading.Event()
    state = simple.run("x", backend=recorded(gate=gate))
    with pytest.raises(KeyError, match="no variable 'nope'"):
        state["nope"]
    with pytest.raises(KeyError, match="nope"):
        state.get_var("nope")
    gate.set()


def test_setting_a_variable(recorded):
    @sgc.function
    def program(s):
        s += sgc.gen("a")
        s["b"] = s["a"] + "!"
        s.set_var("c", s.get_var("b") + "?")
        s += s["c"]

    result = run_both(program, recorded("r"))
    assert (result["b"], result["c"], result.text()) == ("r!", "r!?", "rr!?")


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_setting_a_variable_after_the_run(recorded, way):
    """Programs do `state["x"] = int(state["x"])`."""
    state = {
        "run": lambda: simple.run("x", backend=recorded("42")),
        "call": lambda: simple("x", backend=recorded("42")),
        "batch": lambda: simple.run_batch([("x",)], backend=recorded("42"))[0],
    }[way]()
    state["a"] = int(state["a"])
    assert state["a"] == state.get_var("a") == 42
    state.set_var("new", [1])
    assert state["new"] == [1]
    assert "new" in state


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_in_tells_whether_a_variable_is_set(recorded, way):
    state = {
        "run": lambda: simple.run("x", backend=recorded()),
        "call": lambda: simple("x", backend=recorded()),
        "batch": lambda: simple.run_batch([("x",)], backend=recorded())[0],
    }[way]()
    state.sync()
    assert "a" in state
    assert "b" not in state


def test_in_inside_a_program(recorded):
    @sgc.function
    def program(s):
        s += "no" if "a" in s else "yes"
        s += sgc.gen("a")
        s += "yes" if "a" in s else "no"

    assert run_both(program, recorded("r")).text() == "yesryes"


def test_in_does_not_wait(recorded):
    gate = threading.Event()
    state = simple.run("x", backend=recorded(gate=gate))
    assert "a" in state
    assert "b" not in state
    gate.set()


# -- text, messages, sync, error -----------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_text_messages_sync_error_and_ret_value(recorded, way):
    @sgc.function
    def program(s):
        s += sgc.user("q")
        s += sgc.assistant(sgc.gen("a"))
        return {"answer": s["a"]}

    endpoint = recorded("r")
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
    }[way]()
    assert state.sync() is None
    assert state.error() is None
    assert state.text() == "<|user|>q<|end|><|assistant|>r<|end|>"
    expected = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]
    assert state.messages() == expected
    assert state.ret_value == {"answer": "r"}


def test_text_inside_a_program_waits(recorded):
    @sgc.function
    def program(s):
        s += "a" + sgc.gen("g")
        s += f"[{s.text()}]"

    assert run_both(program, recorded("r")).text() == "ar[ar]"


def test_messages_inside_a_program(recorded):
    @sgc.function(jit=False)
    def program(s):
        s += sgc.user("q")
        return s.messages()

    state = program.run(backend=recorded())
    assert state.ret_value == [{"role": "user", "content": "q"}]


def test_messages_leave_out_what_has_not_ended(recorded):
    """SGLang adds a message when its role ends."""

    @sgc.function
    def program(s):
        s += "outside" + sgc.user("q")
        s += sgc.assistant_begin() + "not over"

    result = run_both(program, recorded())
    assert result.messages() == [{"role": "user", "content": "q"}]
    assert result.text().endswith("not over")


def test_messages_contents_are_left_stripped_and_the_text_is_not(recorded):
    @sgc.function
    def program(s):
        s += sgc.user("  \n q \n")

    result = run_both(program, recorded())
    assert result.messages() == [{"role": "user", "content": "q \n"}]
    assert result.text() == "<|user|>  \n q \n<|end|>"


def test_sync_inside_a_program_waits_for_what_was_appended(recorded):
    endpoint = recorded("r")
    asked = []

    @sgc.function(jit=False)
    def program(s):
        s += "a" + sgc.gen("g")
        s.sync()
        asked.append(len(endpoint.asked))

    program.run(backend=endpoint).sync()
    assert asked == [1]


def test_error_gives_what_ended_the_run(recorded):
    def reply(text, sampling):
        raise RuntimeError("backend broke")

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a")

    gate = threading.Event()
    early = program.run(backend=recorded(reply, gate=gate))
    gate.set()  # it fails once the body is over
    for state in (
        early,
        program(backend=recorded(reply)),
        program.run_batch([{}], backend=recorded(reply))[0],
    ):
        error = state.error()
        assert isinstance(error, errors.ProgramError)
        assert "backend broke" in str(error)
        assert error.where.startswith("test_state.py:")


# -- meta info -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_get_meta_info(served, way):
    endpoint = served()
    state = {
        "run": lambda: simple.run("x", backend=endpoint, max_new_tokens=3),
        "call": lambda: simple("x", backend=endpoint, max_new_tokens=3),
        "batch": lambda: simple.run_batch([("x",)], backend=endpoint, max_new_tokens=3)[0],
    }[way]()
    meta = state.get_meta_info("a")
    assert meta["finish_reason"]["type"] in ("length", "stop")
    assert 1 <= meta["completion_tokens"] <= 3
    assert meta["prompt_tokens"] == 2
    assert "cached_tokens" in meta
    assert state.get_meta_info("nope") is None


def test_get_meta_info_waits_and_is_none_for_what_was_not_generated(recorded):
    gate = threading.Event()

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", stop="!")
        s["own"] = "value"
        with s.var_scope("scope"):
            s += "y"

    state = program.run(backend=recorded("r!r", gate=gate))
    assert state.get_meta_info("own") is None
    assert state.get_meta_info("scope") is None
    assert state.get_meta_info("nope") is None
    threading.Timer(0.02, gate.set).start()
    assert state.get_meta_info("a")["finish_reason"] == {"type": "stop", "matched": "!"}


def test_get_meta_info_has_logprob_rows(served):
    @sgc.function
    def program(s):
        s += "one two three"
        s += sgc.gen(
            "a", max_tokens=3, return_logprob=True, logprob_start_len=0, top_logprobs_num=2,
            return_text_in_logprobs=True, ignore_eos=True,
        )  # fmt: skip

    meta = program.run(backend=served()).get_meta_info("a")
    assert [row[2] for row in meta["input_token_logprobs"]] == ["one", " two", " three"]
    assert meta["input_token_logprobs"][0][0] is None
    assert len(meta["output_token_logprobs"]) == 3
    for rows in meta["output_top_logprobs"]:
        assert len(rows) == 2
    logprob, token, text = meta["output_token_logprobs"][0]
    assert logprob < 0
    assert isinstance(token, int)
    assert isinstance(text, str)
    assert len(meta["input_top_logprobs"]) == 3


def test_get_meta_info_of_several_texts_is_a_list(recorded):
    @sgc.function
    def program(s):
        s += sgc.gen("a", n=3)

    assert len(program.run(backend=recorded()).get_meta_info("a")) == 3


def test_get_meta_info_in_a_body_whose_calls_are_interpreted(recorded):
    """What cannot be compiled is interpreted: `messages()` and meta info inside a program."""

    @sgc.function
    def program(s):
        s += sgc.user("q") + sgc.gen("a")
        s["n"] = len(s.messages())
        s["why"] = s.get_meta_info("a")["finish_reason"]["type"]

    for state in (program.run(backend=recorded()), program(backend=recorded())):
        assert (state["n"], state["why"]) == (1, "stop")


def test_get_meta_info_of_a_select(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.select("a", ["y", "z"])

    meta = program.run(backend=recorded(prefer=lambda p, c: 1)).get_meta_info("a")
    assert len(meta["input_token_logprobs"]) == 2
    assert len(meta["output_token_logprobs"]) == 2
    first, second = meta["normalized_prompt_logprobs"]
    assert second > first


# -- text_iter -----------------------------------------------------------------------------


def _tagged(text, sampling):
    return text[-1].upper() * 4


@sgc.function
def streamed(s):
    s += "a"
    s += sgc.gen("first")
    s += "b"
    s += sgc.gen("second")
    s += "."


def test_text_iter_gives_deltas_that_add_up(recorded):
    state = streamed.run(backend=recorded(_tagged, chunk=1), stream=True)
    deltas = list(state.text_iter())
    assert "".join(deltas) == state.text() == "aAAAAbBBBB."
    assert len(deltas) >= 8


def test_text_iter_of_a_variable(recorded):
    state = streamed.run(backend=recorded(_tagged, chunk=1), stream=True)
    assert list(state.text_iter("second")) == ["B"] * 4
    assert list(state.text_iter("first")) == ["A"] * 4
    assert list(state.text_iter(var_name="first")) == ["A"] * 4


def test_text_iter_comes_before_the_run_is_over(recorded):
    gate = threading.Event()

    @sgc.function
    def program(s):
        s += "constant"
        s += sgc.gen("a")

    state = program.run(backend=recorded(gate=gate), stream=True)
    deltas = state.text_iter()
    assert next(deltas) == "constant"
    assert not state.is_finished
    gate.set()
    assert "".join(deltas) == "reply"


def test_text_iter_of_a_name_that_is_not_declared_yet_waits(recorded, within):
    """SGLang spins until the name is there."""
    gate = threading.Event()

    @sgc.function
    def program(s):
        gate.wait(10)
        s += "x" + sgc.gen("late")

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    deltas = state.text_iter("late")
    threading.Timer(0.02, gate.set).start()
    assert within(lambda: list(deltas)) == ["r"]


def test_text_iter_of_an_unknown_name_is_an_error(recorded, within):
    """SGLang yields one empty text."""
    state = streamed.run(backend=recorded(_tagged), stream=True)
    with pytest.raises(KeyError, match="no variable 'nope'"):
        within(lambda: list(state.text_iter("nope")))


@pytest.mark.parametrize("names", [None, "first"])
def test_text_iter_of_a_run_that_does_not_stream_yields_once(recorded, names):
    endpoint = recorded(_tagged, chunk=1)
    expected = ["aAAAAbBBBB."] if names is None else ["AAAA"]
    for state in (
        streamed.run(backend=endpoint),
        streamed(backend=endpoint),
        streamed.run_batch([{}], backend=endpoint)[0],
    ):
        assert list(state.text_iter(names)) == expected


def test_text_iter_by_several_readers(recorded):
    state = streamed.run(backend=recorded(_tagged, chunk=1), stream=True)
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append("".join(state.text_iter()))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == ["aAAAAbBBBB."] * 5


def test_text_iter_of_several_variables_is_tagged(recorded):
    state = streamed.run(backend=recorded(_tagged, chunk=2), stream=True)
    pieces = list(state.text_iter(["first", "second"]))
    assert all(isinstance(piece, sgc.StreamedText) for piece in pieces)
    assert [(piece.name, piece.text) for piece in pieces] == [
        ("first", "AA"), ("first", "AA"), ("second", "BB"), ("second", "BB"),
    ]  # fmt: skip


def test_text_iter_of_forks_is_tagged_with_their_streams(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(3)
        forks += ["a", "b", "c"]
        forks += sgc.gen("own")
        forks.join()
        s += "z" + sgc.gen("last")

    state = program.run(backend=recorded(_tagged, chunk=2), stream=True)
    found: dict[tuple[str, str], str] = {}
    for piece in state.text_iter(["own", "last"]):
        key = (piece.stream, piece.name)
        found[key] = found.get(key, "") + piece.text
    assert found == {
        ("program/:0.0", "own"): "AAAA",
        ("program/:0.1", "own"): "BBBB",
        ("program/:0.2", "own"): "CCCC",
        ("program", "last"): "ZZZZ",
    }


def test_text_iter_of_a_fork_alone(recorded):
    states = []

    @sgc.function(jit=False)
    def program(s):
        s += "t"
        forks = s.fork(2)
        states.extend(forks)
        forks += ["a", "b"]
        forks += sgc.gen("own")
        forks.join()

    program.run(backend=recorded(_tagged, chunk=1), stream=True).sync()
    assert "".join(states[1].text_iter()) == states[1].text() == "tbBBBB"
    assert list(states[1].text_iter("own")) == ["B"] * 4


def test_text_iter_of_a_var_scope_yields_it_once(recorded, within):
    """In SGLang it hangs for ever."""

    @sgc.function
    def program(s):
        s += "x"
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")
        s += "y"

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert within(lambda: list(state.text_iter("scope"))) == ["in r"]


def test_text_iter_of_a_select(recorded):
    @sgc.function
    def program(s):
        s += "x" + sgc.select("pick", ["one", "two"])

    state = program.run(backend=recorded(prefer=lambda p, c: 1), stream=True)
    assert "".join(state.text_iter("pick")) == "two"


def test_text_iter_keeps_its_tail_at_a_server(served):
    """SGLang's `text_iter(var)` can lose its tail."""
    endpoint = served()
    for _ in range(5):
        state = simple.run("x", backend=endpoint, stream=True)
        assert "".join(state.text_iter("a")) == state["a"]
        assert "".join(state.text_iter()) == state.text()


# -- text_async_iter -----------------------------------------------------------------------


async def _all(iterator):
    return [found async for found in iterator]


def _run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 10))


def test_text_async_iter_gives_deltas(recorded):
    state = streamed.run(backend=recorded(_tagged, chunk=1), stream=True)
    assert _run(_all(state.text_async_iter("second"))) == ["B"] * 4
    assert "".join(_run(_all(state.text_async_iter()))) == "aAAAAbBBBB."
    assert _run(_all(state.text_async_iter(var_name="first"))) == ["A"] * 4


def test_text_async_iter_with_meta_data(served):
    state = simple.run("x", backend=served(), stream=True, max_new_tokens=5, ignore_eos=True)
    pairs = _run(_all(state.text_async_iter("a", return_meta_data=True)))
    assert "".join(text for text, _ in pairs) == state["a"]
    assert pairs[-1][1]["completion_tokens"] == 5
    assert all(isinstance(meta, dict) for _, meta in pairs)


def test_text_async_iter_gives_meta_data_with_every_piece(served):
    """As in SGLang each pair has what the server said with that piece."""
    state = simple.run("x", backend=served(), stream=True, max_new_tokens=4, ignore_eos=True)
    pairs = _run(_all(state.text_async_iter("a", return_meta_data=True)))
    assert [meta.get("completion_tokens") for _, meta in pairs] == [1, 2, 3, 4]


def test_text_async_iter_with_log_probabilities(served):
    """SGLang 0.5.23 merges lists of log-probabilities: the last meta data has them all."""

    @sgc.function
    def program(s):
        s += "x" + sgc.gen("a", max_tokens=4, return_logprob=True, ignore_eos=True)

    state = program.run(backend=served(), stream=True)
    pairs = _run(_all(state.text_async_iter("a", return_meta_data=True)))
    assert len(pairs[-1][1]["output_token_logprobs"]) == 4


@pytest.mark.parametrize("with_meta", [True, False])
def test_text_async_iter_of_a_run_that_does_not_stream_yields_once(recorded, with_meta):
    endpoint = recorded(_tagged, chunk=1)
    for state in (streamed.run(backend=endpoint), streamed(backend=endpoint)):
        found = _run(_all(state.text_async_iter("first", with_meta)))
        texts = [text for text, _ in found] if with_meta else found
        assert texts == ["AAAA"]


def test_text_async_iter_of_several_variables_and_forks(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += ["a", "b"]
        forks += sgc.gen("own")

    state = program.run(backend=recorded(_tagged, chunk=2), stream=True)
    pieces = _run(_all(state.text_async_iter(["own"])))
    assert sorted((p.stream, p.name, p.text) for p in pieces) == [
        ("program/:0.0", "own", "AA"), ("program/:0.0", "own", "AA"),
        ("program/:0.1", "own", "BB"), ("program/:0.1", "own", "BB"),
    ]  # fmt: skip


def test_text_async_iter_of_a_var_scope_yields_it_once(recorded):
    @sgc.function
    def program(s):
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")

    state = program.run(backend=recorded("r", chunk=1), stream=True)
    assert _run(_all(state.text_async_iter("scope"))) == ["in r"]


def test_text_async_iter_raises_what_ended_the_run(recorded):
    def reply(text, sampling):
        raise RuntimeError("backend broke")

    state = streamed.run(backend=recorded(reply), stream=True)
    for names in (None, "first", "second"):
        with pytest.raises(errors.ProgramError, match="backend broke"):
            _run(_all(state.text_async_iter(names)))


# -- forks ---------------------------------------------------------------------------------


def test_fork_children_continue_text_and_variables(recorded):
    @sgc.function
    def program(s):
        s += "trunk "
        s += sgc.gen("t")
        forks = s.fork(2)
        forks += lambda i: f" {i}"
        return [fork.text() for fork in forks], forks[1]["t"], "t" in forks[0]

    result = run_both(program, recorded("T"))
    texts, variable, known = result.ret_value
    assert texts == ["trunk T 0", "trunk T 1"]
    assert (variable, known) == ("T", True)
    assert result.text() == "trunk T"


def test_fork_children_are_asked_side_by_side(recorded):
    gate = threading.Event()
    endpoint = recorded(gate=gate)

    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(4)
        forks += sgc.gen("own")
        forks.join()

    state = program.run(backend=endpoint)
    for _ in range(500):
        if len(endpoint.asked) == 4:
            break
        threading.Event().wait(0.005)
    assert len(endpoint.asked) == 4
    gate.set()
    assert state["own"] == ["reply"] * 4


def test_fork_takes_position_ids_offset_and_ignores_it(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2, position_ids_offset=[0, 1])
        forks += sgc.gen("own")
        forks.join()
        with s.copy(position_ids_offset=[3]) as other:
            other += "x"

    assert run_both(program, recorded())["own"] == ["reply", "reply"]


def test_join_gathers_lists_in_order(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(3)
        forks += ["a", "b", "c"]
        forks += sgc.gen("own")
        forks.join()
        s += "+".join(s["own"])

    result = run_both(program, recorded(_tagged))
    assert result["own"] == ["AAAA", "BBBB", "CCCC"]
    assert result.text() == "tAAAA+BBBB+CCCC"


def test_join_concate_and_append_appends_texts_in_order(recorded):
    """SGLang asks its server to concatenate KV, by a route that no server has."""

    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += ["a", "b"]
        forks += sgc.gen("own")
        forks.join(mode="concate_and_append")
        s += "." + sgc.gen("after")

    result = run_both(program, recorded(_tagged))
    assert result.text() == "taAAAAbBBBB....."
    assert "own" not in result.variables


def test_forks_inside_an_open_role(recorded):
    @sgc.function
    def program(s):
        s += sgc.user_begin() + "q "
        forks = s.fork(2)
        forks += lambda i: str(i) + sgc.user_end()
        forks += sgc.assistant(sgc.gen("own"))
        forks.join()
        return [fork.messages() for fork in forks]

    found = program.run(backend=recorded("r")).ret_value
    answer = {"role": "assistant", "content": "r"}
    assert found == [[{"role": "user", "content": f"q {i}"}, answer] for i in range(2)]


def test_join_of_an_unknown_mode(recorded):
    @sgc.function
    def program(s):
        s.fork(2).join("sideways")

    with pytest.raises(errors.UsageError, match="no mode 'sideways'"):
        program.run(backend=recorded())


def test_copy_joins_at_its_end(recorded):
    @sgc.function
    def program(s):
        s += "t"
        with s.copy() as other:
            other += "a" + sgc.gen("own")
        s += s["own"][0]

    result = run_both(program, recorded(_tagged))
    assert result["own"] == ["AAAA"]
    assert result.text() == "tAAAA"


def test_var_scope_names_what_is_appended_inside(recorded):
    @sgc.function
    def program(s):
        s += "x"
        with s.var_scope("scope"):
            s += "in " + sgc.gen("a")
            s += "!"
        s += "y" + s["scope"]

    result = run_both(program, recorded("r"))
    assert (result["scope"], result.text()) == ("in r!", "xin r!yin r!")


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_roles_as_methods_append_at_once(recorded, role):
    @sgc.function
    def program(s):
        getattr(s, role)("text " + sgc.gen("a"))
        with getattr(s, role)():
            s += "inside "
            s += sgc.gen("b")

    result = run_both(program, recorded("r"))
    once = f"<|{role}|>text r<|end|>"
    assert result.text() == once + f"<|{role}|>inside r<|end|>"
    assert [message["role"] for message in result.messages()] == [role, role]


def test_role_method_appends_once_even_when_it_is_appended(recorded):
    """In SGLang `s += s.user(x)` appends twice, though a comment says otherwise."""

    @sgc.function
    def program(s):
        s += s.user("hi")
        s += s.assistant(sgc.gen("a"))

    result = run_both(program, recorded("r"))
    assert result.text() == "<|user|>hi<|end|><|assistant|>r<|end|>"


# -- groups --------------------------------------------------------------------------------


def _grouped(part):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(2)
        forks += part
        return [fork.text() for fork in forks]

    return program


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (lambda i: f"<{i}>", ["t<0>", "t<1>"]),
        (sgc.gen("a"), ["tr", "tr"]),
        (["x", "y"], ["tx", "ty"]),
        (("x", "y"), ["tx", "ty"]),
        (lambda i: "n" + sgc.gen(f"v{i}"), ["tnr", "tnr"]),
        ([sgc.gen("a"), "y"], ["tr", "ty"]),
    ],
)
def test_group_append(recorded, part, expected):
    assert run_both(_grouped(part), recorded("r")).ret_value == expected


def test_group_append_of_a_text_goes_to_all(recorded):
    """SGLang raises ValueError."""
    assert run_both(_grouped("all"), recorded()).ret_value == ["tall", "tall"]


def test_group_append_of_a_wrong_number_of_parts(recorded):
    with pytest.raises(errors.UsageError, match="group of 2 takes as many parts, found 3"):
        _grouped(["a", "b", "c"]).run(backend=recorded())


def test_group_items_and_iteration(recorded):
    @sgc.function
    def program(s):
        s += "t"
        forks = s.fork(3)
        forks[0] += "a"
        forks[1] += sgc.gen("b")
        forks[-1] += "c"
        for i, fork in enumerate(forks):
            fork += str(i)
        with pytest.raises(IndexError):
            forks[3]
        return len(forks), [fork.text() for fork in forks], forks[1]["b"]

    state = program.run(backend=recorded("r"))
    assert state.ret_value == (3, ["ta0", "tr1", "tc2"], "r")


# -- the rest ------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "call", "batch", "stream"])
def test_stream_executor_has_what_outside_code_reads(recorded, way):
    @sgc.function
    def program(s):
        s += sgc.user("q")
        s += sgc.assistant(sgc.gen("a"))

    endpoint = recorded("r")
    state = {
        "run": lambda: program.run(backend=endpoint),
        "call": lambda: program(backend=endpoint),
        "batch": lambda: program.run_batch([{}], backend=endpoint)[0],
        "stream": lambda: program.run(backend=endpoint, stream=True),
    }[way]()
    executor = state.stream_executor
    executor.sync()
    assert executor.text_ == executor.text() == "<|user|>q<|end|><|assistant|>r<|end|>"
    assert executor.messages_[-1] == {"role": "assistant", "content": "r"}
    assert executor.variables["a"] == executor.get_var("a") == "r"
    assert executor.is_finished
    assert executor.error() is None
    executor.set_var("b", 1)
    assert state["b"] == 1
    executor.end()


@pytest.mark.parametrize("way", ["run", "call"])
def test_stream_executors_get_meta_info_takes_a_timeout(recorded, way):
    """SGLang's executor has one where its state has none."""
    state = {
        "run": lambda: simple.run("x", backend=recorded()),
        "call": lambda: simple("x", backend=recorded()),
    }[way]()
    meta = state.stream_executor.get_meta_info("a", timeout=5)
    assert meta["finish_reason"]["type"] == "stop"


def test_is_finished_before_and_after(recorded):
    gate = threading.Event()
    state = simple.run("x", backend=recorded(gate=gate))
    assert not state.stream_executor.is_finished
    gate.set()
    assert state.text() == "ask xreply."
    state.stream_executor.sync()
    for _ in range(500):
        if state.stream_executor.is_finished:
            break
        threading.Event().wait(0.002)
    assert state.stream_executor.is_finished


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_repr_is_sliced_by_a_public_program(recorded, way):
    state = {
        "run": lambda: simple.run("x", backend=recorded()),
        "call": lambda: simple("x", backend=recorded()),
        "batch": lambda: simple.run_batch([("x",)], backend=recorded())[0],
    }[way]()
    assert repr(state) == "ProgramState(ask xreply.)"


@pytest.mark.parametrize("way", ["run", "call", "batch"])
def test_notebook_html(recorded, way):
    endpoint = recorded("<b>&")
    state = {
        "run": lambda: simple.run("x<y", backend=endpoint),
        "call": lambda: simple("x<y", backend=endpoint),
        "batch": lambda: simple.run_batch([("x<y",)], backend=endpoint)[0],
    }[way]()
    html = state._repr_html_()
    assert "x&lt;y" in html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert 'title="generated"' in html


def test_join_warns_of_names_that_the_trunk_has(recorded):
    @sgc.function
    def program(s):
        s["own"] = "trunk's"
        forks = s.fork(2)
        forks += sgc.gen("own")
        forks.join()

    with pytest.warns(SgcWarning, match=r"test_state.py:\d+.*join leaves 'own' as it is"):
        state = program.run(backend=recorded())
    assert state["own"] == "trunk's"


def test_join_of_new_names_warns_of_nothing(recorded):
    @sgc.function
    def program(s):
        s += sgc.gen() + "t"
        forks = s.fork(2)
        forks += sgc.gen("own")
        forks += sgc.gen()
        forks.join()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert program.run(backend=recorded())["own"] == ["reply", "reply"]
