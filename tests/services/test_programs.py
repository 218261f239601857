"""`sgc serve --program`: what a client asks for in one message is what it would have run itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from engine.http.conftest import Answer
from openai import OpenAI
from services.conftest import NAMES, TOKENS, serving, tip
from waiting import until

import sgc
from sgc.cli.running.serve import serve
from sgc.errors import ArgumentError, SgcError, UsageError
from sgc.ir.text.parser import parse
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.engine.preparing.salts import domain_of
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.run.options import RunOptions
from sgc.services.chats import texts_of_reply
from sgc.services.programs import Programs, checked_arguments, load_programs


def test_programs_are_listed_with_their_parameters(server):
    found = server.ask("/v1/programs").json["data"]
    assert [each["id"] for each in found] == [*NAMES, "other"]
    topic, n = found[0]["parameters"]
    assert topic == {"name": "topic", "type": "text", "required": True}
    assert n == {"name": "n", "type": "int", "required": False}
    assert server.ask("/v1/programs/other").json["parameters"] == found[0]["parameters"]


def test_a_run_gives_what_the_client_would_have_got(server):
    body = {"arguments": {"topic": "tea", "n": 5}, "seed": 9}
    answer = server.ask("/v1/programs/tip", body)
    assert answer.status == 200
    with Endpoint(EngineBackend(server.uri)) as endpoint:
        own = tip.run_once({"topic": "tea", "n": 5}, RunOptions(seed=9), endpoint)
    found = answer.json
    assert found["return"] == own.ret_value
    assert found["text"] == own.text()
    assert found["variables"] == own.variables
    assert [each["text"] for each in found["streams"]] == [each.text for each in own.streams]
    assert found["seed"] == 9
    assert found["usage"]["completion_tokens"] == own.stats.completion_tokens == 18
    assert found["id"] == answer.headers["X-Request-Id"]


def test_texts_come_as_they_are_generated(server):
    events = server.ask(
        "/v1/programs/tip", {"arguments": {"topic": "tea"}, "seed": 9, "stream": True}
    ).events
    *texts, result = events
    assert result["type"] == "result"
    main = "".join(each["text"] for each in texts if each["stream"] == "tip")
    assert main == result["text"]
    generated = [each["text"] for each in texts if each["is_generated"] and each["stream"] == "tip"]
    assert "".join(generated) == result["variables"]["first"]
    assert {each["type"] for each in texts} == {"text"}
    assert len({each["stream"] for each in texts}) == 3


def test_programs_call_the_servers_tools(server):
    found = server.ask("/v1/programs/loud", {"arguments": {"topic": "tea"}}).json
    assert found["text"].startswith("TEA")
    assert found["return"] == found["variables"]["said"].upper()


def client(server) -> OpenAI:
    return OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


def test_a_program_is_a_model_of_openais_api(server):
    openai = client(server)
    assert {"fake", "program/tip"} <= {model.id for model in openai.models.list()}
    assert openai.models.retrieve("program/chain").owned_by == "sgc"
    parts = [{"type": "text", "text": "te"}, {"type": "text", "text": "a"}]
    messages = [{"role": "user", "content": "no"}, {"role": "user", "content": parts}]
    said = openai.chat.completions.create(model="program/tip", messages=messages, seed=9)
    own = server.ask("/v1/programs/tip", {"arguments": {"topic": "tea"}, "seed": 9}).json
    assert json.loads(said.choices[0].message.content) == own["return"]
    assert said.usage.completion_tokens == own["usage"]["completion_tokens"]
    # One that returns nothing gives its text.
    said = openai.chat.completions.create(model="program/chain", messages=messages, seed=9)
    assert said.choices[0].message.content.startswith("tea step 0: ")


def test_its_answer_is_streamed_in_openais_form(server):
    chunks = list(
        client(server).chat.completions.create(
            model="program/chain", messages=[{"role": "user", "content": "tea"}], seed=9,
            stream=True, stream_options={"include_usage": True},
        )
    )  # fmt: skip
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert text.startswith("tea step 0: ")
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens == 12
    assert len([each for each in chunks if each.choices and each.choices[0].delta.content]) > 2
    assert [each.choices[0].delta.role for each in chunks[:2]] == ["assistant", None]


def test_its_answer_is_streamed_as_it_comes(server):
    messages = [{"role": "user", "content": "tea"}]
    model = "program/endless"
    with client(server).chat.completions.create(
        model=model, messages=messages, stream=True
    ) as chunks:
        texts = (each.choices[0].delta.content for each in chunks)
        assert next(texts) == "tea"
        assert next(texts)


def last(s, topic):
    s += topic + sgc.gen("a", max_tokens=2)
    s += " so " + sgc.gen("b", max_tokens=2)
    return s["b"]


def of_a_loop(s, topic):
    for _ in range(9):
        s += topic + sgc.gen("a", max_tokens=2)
        if s["a"] != "x":
            return s["a"]
    return s["a"]


def of_a_path(s, topic):
    s += topic + sgc.gen("a", max_tokens=2)
    if s["a"] == "x":
        return None
    return s["a"]


def sometimes_more(s, topic):
    s += topic + sgc.gen("a", max_tokens=2)
    if s["a"] == "x":
        s += " so " + sgc.gen("b", max_tokens=2)


def apart(s, topic):
    fork = s.fork(1)[0]
    fork += topic + sgc.gen("a", max_tokens=2)
    s += " so " + fork["a"]


@pytest.mark.parametrize(
    ("program", "shown"),
    [(last, ["b"]), (of_a_loop, []), (of_a_path, []), (sometimes_more, ["a", "b"]), (apart, [])],
)
def test_the_texts_of_a_reply_are_known_beforehand_or_it_comes_at_the_end(program, shown):
    graph = sgc.function(program).compile(check=False).graph
    shows = texts_of_reply(graph)
    gens = [node for node in graph.nodes() if node.op == "gen"]
    path = program.__name__ + ("/:1.0" if program is apart else "")
    assert [node.text("name") for node in gens if shows(node, path)] == shown


BAD = {
    "unknown program": ("/v1/programs/tap", {}, 404, "name", "this server has tip, chain"),
    "missing": ("/v1/programs/tip", {}, 400, "arguments", "missing argument 'topic' (text)"),
    "surplus": ("/v1/programs/chain", {"arguments": {"topic": "a", "n": 1}}, 400, "arguments",
                "'n'"),
    "wrong type": ("/v1/programs/tip", {"arguments": {"topic": 3}}, 400, "arguments", "'topic'"),
    "no object": ("/v1/programs/tip", {"arguments": [1]}, 400, "arguments", "must be an object"),
    "option": ("/v1/programs/tip", {"arguments": {"topic": "a"}, "temperature": -1}, 400,
               "temperature", "from 0 to 100"),
    "option's type": ("/v1/programs/tip", {"arguments": {"topic": "a"}, "max_tokens": "x"}, 400,
                      "max_tokens", "max_tokens"),
    "unknown field": ("/v1/programs/tip", {"arguments": {"topic": "a"}, "tools": []}, 400,
                      "tools", "not a parameter"),
    "stream": ("/v1/programs/tip", {"arguments": {"topic": "a"}, "stream": 1}, 400, "stream",
               "true or false"),
    "raises": ("/v1/programs/fails", {"arguments": {"topic": "a"}}, 422, None, "it is never empty"),
    "too long": ("/v1/programs/endless", {"arguments": {"topic": "a " * 40_000}}, 400, None,
                 "tokens"),
    "chat of a misspelt program": ("/v1/chat/completions", {"model": "program/chian", "messages": [
        {"role": "user", "content": "a"}]}, 404, "model", "this server has chain, "),
    "chat without user": ("/v1/chat/completions", {"model": "program/tip", "messages": [
        {"role": "system", "content": "a"}]}, 400, "messages", "no user message"),
    "chat of images": ("/v1/chat/completions", {"model": "program/tip", "messages": [
        {"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages", "must be a text"),
    "chat with tools": ("/v1/chat/completions", {"model": "program/tip", "messages": [
        {"role": "user", "content": "a"}], "tools": [{}]}, 400, "tools", "not a parameter"),
    "chat of several": ("/v1/chat/completions", {"model": "program/tip", "messages": [
        {"role": "user", "content": "a"}], "n": 2}, 400, "n", "one answer"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_a_client_got_wrong_is_told(server, what):
    path, body, status, param, words = BAD[what]
    answer = server.ask(path, body)
    assert answer.status == status, answer.text
    assert answer.error["param"] == param
    assert words in answer.error["message"]


def test_an_error_in_a_stream_is_its_last_event(server):
    body = {"arguments": {"topic": "a"}, "stream": True}
    *texts, error = server.ask("/v1/programs/fails", body).events
    assert texts
    assert "it is never empty" in error["error"]["message"]


@pytest.mark.parametrize("topic", ["a number", "a key", "half a pair"])
def test_a_result_that_is_no_json_is_the_programs_error(server, topic):
    runs = "/v1/programs/odd", {"arguments": {"topic": topic}}
    message = {"role": "user", "content": topic}
    chats = "/v1/chat/completions", {"model": "program/odd", "messages": [message]}
    for path, body in (runs, chats):
        answer = server.ask(path, body)
        assert (answer.status, answer.error["code"]) == (422, "program_failed"), answer.text
        for each in (answer, server.ask(path, {**body, "stream": True})):
            assert "the result cannot be written as JSON" in each.text


def test_more_programs_than_may_run_are_told_to_retry_and_who_hangs_up_stops_its_run(server):
    data = json.dumps({"arguments": {"topic": "a"}, "stream": True}).encode()
    head = f"POST /v1/programs/endless HTTP/1.1\r\nHost: {server.host}\r\n"
    head += f"Content-Length: {len(data)}\r\n\r\n"
    held = [socket.create_connection(server.address) for _ in range(2)]
    for one in held:
        one.sendall(head.encode() + data)
        assert one.recv(100).startswith(b"HTTP/1.1 200")
    refused = server.ask("/v1/programs/tip", {"arguments": {"topic": "tea"}})
    assert refused.status == 429
    assert "Retry-After" in refused.headers
    assert refused.headers["sgc-begun"] == "no"
    for one in held:
        one.close()
    until(lambda: server.ask("/v1/programs/tip", {"arguments": {"topic": "tea"}}).status == 200)


@pytest.mark.slow
def test_clients_of_two_tokens_share_no_prefix(files, tmp_path):
    (tmp_path / "tokens").write_text("\n".join(TOKENS))
    options = [f"--program={files / 'chain.sgir'}", "--token-file", str(tmp_path / "tokens")]
    body = {"arguments": {"topic": "a long story of tea, " * 20}, "seed": 1}
    with serving(tmp_path, *options) as server:
        assert server.ask("/v1/programs/chain", body).status == 401
        assert server.ask("/v1/programs").status == 401
        cached = [
            server.ask("/v1/programs/chain", body, Authorization=f"Bearer {token}").json["usage"]
            ["prompt_tokens_details"]["cached_tokens"]
            for token in (TOKENS[0], TOKENS[0], TOKENS[1])
        ]  # fmt: skip
    assert cached[1] > cached[0] == cached[2]


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (["{files}/none.sgir"], "none.sgir"),
        (["a/b={files}/tip.sgir"], "is no name"),
        (["{files}/tip.sgir", "tip={files}/chain.sgir"], "two programs named 'tip'"),
        (["{files}/loud.sgir"], "shout"),
    ],
)
def test_what_cannot_be_served_is_told_at_the_start(files, targets, words):
    with pytest.raises(SgcError, match=words):
        load_programs([each.format(files=files) for each in targets], [])


def test_tokens_and_programs_are_read_again_on_a_signal(files, tmp_path):
    program, tokens = tmp_path / "one.sgir", tmp_path / "tokens"
    shutil.copy(files / "chain.sgir", program)
    tokens.write_text("alpha")
    body = {"arguments": {"topic": "tea, " * 30}, "seed": 1}

    def asked(token: str) -> Answer:
        return server.ask("/v1/programs/one", body, Authorization=f"Bearer {token}")

    with serving(tmp_path, f"--program={program}", "--token-file", str(tokens)) as server:
        process = server.engine.process
        before = asked("alpha").json
        assert set(before["variables"]) == {"step0", "step1", "step2"}
        shutil.copy(files / "tip.sgir", program)
        tokens.write_text("beta")
        process.send_signal(signal.SIGHUP)
        until(lambda: asked("beta").status == 200)
        assert asked("alpha").status == 401
        after = asked("beta").json
        assert set(after["variables"]) == {"first", "more"}
        # Nothing of the token that was alone before.
        shutil.copy(files / "chain.sgir", program)
        process.send_signal(signal.SIGHUP)
        until(lambda: "step0" in asked("beta").json["variables"])
        program.write_text("broken")
        tokens.write_text("gamma")
        process.send_signal(signal.SIGHUP)
        until(lambda: "nothing is reloaded" in server.engine.said)
        assert asked("gamma").status == 401
        assert asked("beta").status == 200


def test_what_clients_send_as_a_token_means_nothing_where_there_are_none(files):
    programs = Programs([f"{files}/tip.sgir"])
    programs.open("unix:/nowhere", has_tokens=False)
    assert programs._backend("one") is programs._backend("other")
    programs.open("unix:/nowhere", has_tokens=True)
    assert programs._backend("one") is not programs._backend("other")


def test_a_token_has_no_other_tokens_domain_after_a_change():
    tokens = Tokens(["alpha"])
    assert tokens.find(b"Bearer alpha") == b""
    tokens.replace(Tokens(["beta"]))
    assert tokens.find(b"Bearer alpha") is None
    assert tokens.find(b"Bearer beta") == domain_of("beta")


def test_options_that_mean_nothing_alone_are_refused(files):
    with pytest.raises(UsageError, match="over HTTP"):
        serve(program=(f"{files}/tip.sgir",), http="off")
    with pytest.raises(UsageError, match="what programs may call"):
        serve(tools=(f"{files}/loud.py",), http="0")


@pytest.mark.slow
def test_a_server_that_cannot_serve_its_programs_ends_with_the_reason(files, tmp_path):
    command = [sys.executable, "-P", "-m", "sgc", "serve", "--model", "fake", "--http", "0",
               "--listen", f"unix:{tmp_path}/sock", "--program", f"{files}/loud.sgir"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert found.returncode == 1
    assert found.stderr.startswith("sgc: error: ")
    assert "loud.py:10: the program calls the tool" in found.stderr


def test_an_image_is_data_and_never_one_of_the_servers_files():
    text = """sgir 1
program @pictured(%photo: media) {
  %s0 = stream "pictured"
  %s1 = image %s0 %photo
  return
}"""
    program = Program(parse(text))
    for bad in ("/etc/passwd", "photo.png", 3, "http://localhost/a.png"):
        with pytest.raises(ArgumentError, match="data: URI"):
            checked_arguments(program, {"photo": bad})
    pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
    assert checked_arguments(program, {"photo": pixel})["photo"].mime == "image/gif"


def test_a_run_that_takes_too_long_is_ended(server):
    answer = server.ask("/v1/programs/tip", {"arguments": {"topic": "tea"}, "timeout": 1e-6})
    assert (answer.status, answer.error["code"]) == (504, "deadline_exceeded")
    body = {"model": "program/tip", "messages": [{"role": "user", "content": "tea"}]}
    assert server.ask("/v1/chat/completions", {**body, "timeout": 1e-6}).status == 504
