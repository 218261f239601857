"""Helpers that SGLang's scripts import: files, requests, images, schemas as patterns."""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys

import pytest
from waiting import BOUND_S

from sgc.errors import SgcError, UsageError


def test_files_of_the_scripts(sgl, tmp_path):
    utils = sgl.utils
    path = tmp_path / "lines.jsonl"
    path.write_text('# note\n{"a": 1}\n\n{"a": 2}\n')
    assert utils.read_jsonl(str(path))[:1] == [{"a": 1}]
    utils.dump_state_text(str(tmp_path / "out.txt"), ["one", 2])
    line = "=" * 40
    wanted = "".join(f"{line} {i} {line}\n{t}\n{line * 2}\n\n" for i, t in enumerate(["one", "2"]))
    assert (tmp_path / "out.txt").read_text() == wanted
    assert utils.download_and_cache_file(str(path)) == str(path)
    assert utils.download_and_cache_file("http://x/y", filename=str(path)) == str(path)
    with pytest.raises(SgcError, match=r"cannot fetch .*\n.*put the file at"):
        utils.download_and_cache_file("http://127.0.0.1:9/f", str(tmp_path / "f"))
    fetched = utils.download_and_cache_file(path.as_uri(), str(tmp_path / "g"))
    assert (tmp_path / "g").read_text() == path.read_text()
    assert fetched == str(tmp_path / "g")
    assert utils.encode_image_base64(b"abc") == "YWJj"


def test_requests_and_addresses(sgl, server, capsys):
    utils = sgl.utils
    reply = utils.http_request(server.url + "/get_model_info")
    assert (reply.status_code, reply.json()["model_path"]) == (200, server.model)
    body = {"text": "a", "sampling_params": {"max_new_tokens": 2}, "stream": True}
    lines = list(utils.http_request(server.url + "/generate", json=body, stream=True).iter_lines())
    assert lines[0].startswith(b"data: {")
    assert utils.http_request(server.url + "/nowhere").status_code == 404
    assert utils.normalize_base_url("127.0.0.1", 1) == "http://127.0.0.1:1"
    assert utils.normalize_base_url("http://h/", 1) == "http://h:1"
    assert utils.normalize_base_url("https://h:2", 1) == "https://h:2"
    utils.wait_for_server(server.url, timeout=BOUND_S)
    utils.print_highlight("seen")
    assert capsys.readouterr().out == "seen\n"


def test_starting_sglangs_server_is_refused(sgl):
    with pytest.raises(UsageError, match=r"SGLang is not installed\n.*sgl.Runtime"):
        sgl.utils.launch_server_cmd("python -m sglang.launch_server --model-path x")
    with pytest.raises(UsageError, match="SGLang is not installed"):
        sgl.test.test_utils.popen_launch_server("m", "http://127.0.0.1:1", timeout=1)
    process, port = sgl.utils.launch_server_cmd(f"{sys.executable} -c input()", host="127.0.0.1")
    assert port > 0
    sgl.utils.terminate_process(process)
    assert process.poll() is not None


def test_the_benchmarks_command_line(sgl, server, monkeypatch):
    test_utils = sgl.test.test_utils
    monkeypatch.setattr(sys, "argv", ["bench.py", "--parallel", "2", "--port", str(server.port)])
    args = test_utils.add_common_sglang_args_and_parse(argparse.ArgumentParser())
    assert (args.parallel, args.host, args.backend) == (2, "http://127.0.0.1", "srt")
    assert (args.device, args.result_file, args.raw_result_file) == ("auto", "result.jsonl", None)
    assert test_utils.select_sglang_backend(args).model_info["model_path"] == server.model
    args.backend = "srt-no-parallel"
    args.host = "127.0.0.1"
    assert test_utils.select_sglang_backend(args).get_model_name() == server.model
    assert sgl.global_config.enable_parallel_encoding is False
    args.backend = "gpt-4"
    asked = test_utils.select_sglang_backend(args)  # of OpenAI; nobody is asked yet
    assert isinstance(asked, sgl.OpenAI)
    assert asked.get_model_name() == "gpt-4"
    args.backend = "vllm"
    with pytest.raises(UsageError, match="unknown --backend 'vllm'"):
        test_utils.select_sglang_backend(args)


def test_images_are_loaded_from_where_scripts_have_them(sgl, tmp_path):
    load_image = sgl.srt.utils.load_image
    (tmp_path / "x.png").write_bytes(PNG)
    # Where Pillow is not installed they stay bytes, which do for sgl.image.
    for source in (PNG, str(tmp_path / "x.png"), "data:image/png;base64," + PNG_BASE64, PNG_BASE64):
        image, _ = load_image(source)
        assert image == PNG or image.size == (1, 1)
    with pytest.raises(SgcError, match="cannot load the image"):
        load_image(str(tmp_path / "none.png"))


PNG_BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


PNG = base64.b64decode(PNG_BASE64)


STRING = r'"([^"\\\x00-\x1F\x7F-\x9F]|\\["\\/bfnrt])*"'


SCHEMAS = {
    '{"type": "integer"}': "(-)?(0|[1-9][0-9]*)",
    '{"enum": ["a.b", 1, null]}': r'("a\.b"|1|null)',
    '{"type": "string", "maxLength": 3}': STRING.replace("*", "{0,3}", 1)[:-1] + '"',
    '{"type": "array", "items": {"type": "boolean"}, "minItems": 1}': (
        r"\[[ ]?(((true|false))(,[ ]?((true|false))){0,})[ ]?\]"
    ),
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schemas_have_the_usual_patterns(sgl, schema):
    build = sgl.srt.constrained.outlines_backend.build_regex_from_object
    if "maxLength" not in schema:
        assert build(schema) == SCHEMAS[schema]
    assert build(json.loads(schema)) == build(schema)


def test_patterns_match_the_json_of_their_schema(sgl):
    pydantic = pytest.importorskip("pydantic")
    build = sgl.srt.constrained.outlines_backend.build_regex_from_object

    class Wand(pydantic.BaseModel):
        wood: str = pydantic.Field(max_length=6)
        length: float

    class Wizard(pydantic.BaseModel):
        name: str
        age: int
        wand: Wand
        friends: list[str]
        house: str | None = None

    pattern = re.compile(build(Wizard))
    wand = {"wood": "oak", "length": 1.5}
    full = {"name": "H", "age": 11, "wand": wand, "friends": ["R"], "house": None}
    assert pattern.fullmatch(json.dumps(full))
    assert pattern.fullmatch(json.dumps(full, separators=(",", ":")))
    assert pattern.fullmatch(json.dumps({k: v for k, v in full.items() if k != "house"}))
    assert not pattern.fullmatch(json.dumps({**full, "age": "11"}))
    assert not pattern.fullmatch(json.dumps({**full, "wand": {**wand, "wood": "mahogany"}}))
    optional = re.compile(build({"type": "object", "properties": {"a": {}, "b": {"const": 1}}}))
    for text in ("{}", '{"a": [1]}', '{"b": 1}', '{"a": {"x": "y"}, "b": 1}'):
        assert optional.fullmatch(text), text
    assert not optional.fullmatch('{"b": 1, "a": 2}')
    tree = {"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"t": {"$ref": "#/$defs/t"}}}}}
    for bad in (tree, {"type": "text"}, {"type": "string", "format": "email"}, {"$ref": "#/no"}):
        with pytest.raises(UsageError):
            build(bad)
