"""SGLang's front end under its own name: imports, templates, helpers, and scripts unmodified."""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from sglang_server import ScriptedServer
from waiting import BOUND_S

from sgc.compat.sglang import install
from sgc.errors import ProgramError, SgcError, UsageError
from sgc.runs.endpoints import set_default_backend


def _forget() -> None:
    for name in [n for n in sys.modules if n == "sglang" or n.startswith("sglang.")]:
        del sys.modules[name]


@pytest.fixture
def sgl() -> Iterator[ModuleType]:
    """The stand-in, gone again afterwards."""
    finders = list(sys.meta_path)
    yield install()
    _forget()
    sys.meta_path[:] = finders
    set_default_backend(None)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(model="Qwen/Qwen2-7B-Instruct") as running:
        yield running


# -- names -----------------------------------------------------------------------------

TOP = """function gen gen_int gen_string select image video system user assistant system_begin
system_end user_begin user_end assistant_begin assistant_end separate_reasoning
set_default_backend flush_cache get_server_info Runtime RuntimeEndpoint Engine ServerArgs OpenAI
Anthropic LiteLLM VertexAI Crusoe global_config token_length_normalized greedy_token_selection
unconditional_likelihood_normalized __version__"""

# What public programs and their tools import, and what else section 1 of the facts lists.
NAMES = {
    "sglang": TOP,
    "sglang.api": "set_default_backend function gen",
    "sglang.lang.api": "set_default_backend function gen select flush_cache",
    "sglang.global_config": "global_config",
    "sglang.lang.global_config": "global_config",
    "sglang.version": "__version__",
    "sglang.lang.ir": "REGEX_INT REGEX_FLOAT REGEX_BOOL REGEX_STR REGEX_STRING SglFunction SglGen "
    "SglSamplingParams SglExpr SglExprList SglConstantText SglSelect SglImage SglVideo "
    "SglRoleBegin SglRoleEnd SglSeparateReasoning",
    "sglang.lang.chat_template": "get_chat_template get_chat_template_by_model_path ChatTemplate "
    "register_chat_template register_chat_template_matching_function ChatTemplateStyle",
    "sglang.lang.choices": "ChoicesDecision ChoicesSamplingMethod token_length_normalized "
    "TokenLengthNormalized GreedyTokenSelection UnconditionalLikelihoodNormalized",
    "sglang.lang.interpreter": "ProgramState ProgramStateGroup StreamExecutor cache_program "
    "run_program run_program_batch",
    "sglang.lang.tracer": "trace_program extract_prefix_by_tracing",
    "sglang.lang.compiler": "compile_func CompiledFunction",
    "sglang.lang.backend.base_backend": "BaseBackend",
    "sglang.lang.backend.runtime_endpoint": "RuntimeEndpoint Runtime",
    "sglang.backend.runtime_endpoint": "RuntimeEndpoint",
    "sglang.lang.backend.openai": "OpenAI TokenUsage",
    "sglang.lang.backend.anthropic": "Anthropic",
    "sglang.lang.backend.litellm": "LiteLLM",
    "sglang.lang.backend.vertexai": "VertexAI",
    "sglang.utils": "dump_state_text read_jsonl download_and_cache_file http_request "
    "print_highlight terminate_process wait_for_server launch_server_cmd normalize_base_url "
    "encode_image_base64 encode_video_base64 HttpResponse is_same_type trim_overlap",
    "sglang.test.test_utils": "add_common_sglang_args_and_parse select_sglang_backend is_in_ci "
    "CustomTestCase DEFAULT_MODEL_NAME_FOR_TEST dump_bench_raw_result popen_launch_server",
    "sglang.test.doc_patch": "launch_server_cmd",
    "sglang.srt.constrained.outlines_backend": "build_regex_from_object",
    "sglang.srt.hf_transformers_utils": "get_tokenizer",
    "sglang.srt.utils.hf_transformers_utils": "get_tokenizer",
    "sglang.srt.utils": "load_image kill_process_tree",
    "sglang.srt.server_args": "ServerArgs",
}


@pytest.mark.parametrize("module", NAMES)
def test_every_name_that_programs_import_is_there(sgl, module):
    found = importlib.import_module(module)
    assert not [name for name in NAMES[module].split() if not hasattr(found, name)]


def test_modules_hang_together(sgl):
    import sglang.lang.backend.runtime_endpoint as endpoint_module
    from sglang.global_config import global_config

    assert install() is sgl is sys.modules["sglang"]
    assert sgl.global_config is global_config
    assert sgl.RuntimeEndpoint is endpoint_module.RuntimeEndpoint
    assert sgl.lang.api.gen is sgl.gen
    assert re.fullmatch(r"\d+\.\d+\.\d+\+sgc", sgl.__version__)
    assert importlib.util.find_spec("sglang.utils") is not None
    assert isinstance(sgl.function(lambda s: None), sgl.lang.ir.SglFunction)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("import sglang; sglang.nope", AttributeError, "sglang has no 'nope'; it has: Anthropic"),
        ("import sglang.utils as u; u.nope", AttributeError, "sglang.utils has no 'nope'"),
        ("from sglang import nope", ImportError, "it has: Anthropic"),
        ("from sglang.utils import nope", ImportError, "it has: HttpResponse, convert_json"),
        ("import sglang.srt.layers", ImportError, "sglang.srt has no 'layers'"),
    ],
)
def test_what_is_not_there_says_what_is(sgl, code, error, message):
    body = compile(code, "program", "exec")
    with pytest.raises(error, match=re.escape(message)):
        exec(body, {})


def test_a_real_sglang_that_is_imported_is_not_replaced(monkeypatch):
    monkeypatch.setitem(sys.modules, "sglang", ModuleType("sglang"))
    with pytest.raises(UsageError, match=r"already imported .*\n.* before anything imports sglang"):
        install()


# -- backends --------------------------------------------------------------------------


def test_the_offline_engine_is_no_backend(sgl):
    with pytest.raises(UsageError, match="no backend of programs"):
        sgl.Engine(model_path="fake")


def test_runtime_takes_sglangs_arguments(sgl):
    given = sgl.ServerArgs("fake", tp_size=2, log_level="error", context_length=512, dtype="float")
    assert given.engine_settings == {"max_context": 512, "dtype": "float32"}
    assert (given.tp_size, given.tokenizer_path) == (2, "fake")
    bad: list[tuple[dict[str, Any], str]] = [
        ({"quantization": "fp8", "frobnicate": 1}, "no argument quantization, frobnicate"),
        ({"dtype": "half"}, "dtype must be one of"),
        ({"tokenizer_path": "other"}, "tokenizer_path='other'"),
    ]
    for arguments, message in bad:
        with pytest.raises(UsageError, match=message):
            sgl.Runtime(model_path="fake", **arguments)


def test_a_runtime_of_ours_under_sglangs_name(sgl):
    from sglang.lang.chat_template import get_chat_template

    with sgl.Runtime(model_path="fake", tp_size=1, log_level="error", port=30000) as runtime:
        sgl.set_default_backend(runtime)
        assert sgl.global_config.default_backend is runtime
        runtime.endpoint.chat_template = get_chat_template("llama-3-instruct")
        assert runtime.endpoint.chat_template.name == "llama-3-instruct"
        state = _chat(sgl).run("hi", max_new_tokens=4, ignore_eos=True)
        assert "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>" in state.text()
        assert runtime.token_usage.completion_tokens == 4


def _chat(sgl: ModuleType) -> Any:
    @sgl.function
    def chat(s, question):
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen("answer"))

    return chat


def test_a_base_backend_has_a_template_and_no_model(sgl, server):
    from sglang.lang.backend.base_backend import BaseBackend
    from sglang.lang.chat_template import get_chat_template

    backend = BaseBackend()
    assert backend.chat_template.name == "default"
    backend.chat_template = get_chat_template("llama-2-chat")
    assert isinstance(sgl.RuntimeEndpoint(server.url), BaseBackend)
    assert not isinstance(server, BaseBackend)
    with pytest.raises(ProgramError, match="gen failed: NotImplementedError"):
        _chat(sgl).run("hi", backend=backend).text()


def test_the_config_is_the_front_ends(sgl, server):
    assert sgl.global_config.default_backend is None
    backend = sgl.RuntimeEndpoint(server.url)
    sgl.global_config.default_backend = backend
    assert _chat(sgl).run("hi", temperature=0)["answer"]
    assert backend.token_usage.prompt_tokens > 0
    backend.token_usage.reset()
    assert repr(backend.token_usage) == "TokenUsage(prompt_tokens=0, completion_tokens=0)"
    sgl.global_config.enable_parallel_encoding = False
    with pytest.raises(UsageError, match="skip_special_tokens_in_output=False is not available"):
        sgl.global_config.skip_special_tokens_in_output = False


# -- programs --------------------------------------------------------------------------


def test_programs_trace_compile_and_pin_in_sglangs_words(sgl, scripted):
    backend = scripted(lambda prompt, sampling: "!")

    @sgl.function
    def greet(s, style, name):
        s += style + " " * 70 + "Hello " + name + sgl.gen("mark", max_tokens=1)

    polite = greet.bind(style="Sir.")
    assert "gen" in polite.trace().last_node.print_graph_dfs()
    polite.pin(backend)
    polite.cache(backend)
    polite.unpin(backend)
    compiled = polite.compile(backend=backend)
    assert compiled.run(name="Ada").text().endswith("Hello Ada!")
    states = compiled.run_batch([{"name": "a"}, {"name": "b"}], temperature=0)
    assert [state.text()[-2:] for state in states] == ["a!", "b!"]
    assert isinstance(states[0], sgl.lang.interpreter.ProgramState)
    assert isinstance(greet.run("x", "y", backend=backend), sgl.lang.interpreter.ProgramState)


def test_the_older_name_of_speculation(sgl):
    assert sgl.function(api_num_spec_tokens=64)(lambda s: None).num_api_spec_tokens == 64
    with pytest.raises(UsageError, match="give one"):
        sgl.function(num_api_spec_tokens=1, api_num_spec_tokens=2)


# -- chat templates --------------------------------------------------------------------


@pytest.fixture
def templates(sgl) -> Iterator[ModuleType]:
    module = importlib.import_module("sglang.lang.chat_template")
    yield module
    module.chat_template_registry.clear()
    module.matching_function_registry.clear()


def test_templates_have_sglangs_form_and_ours(templates):
    llama = templates.get_chat_template("llama-2-chat")
    assert llama.style is templates.ChatTemplateStyle.LLAMA2
    assert llama.chat_format.system_in_user
    chat = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": "A"},
    ]
    assert llama.get_prompt(chat) == "[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A </s><s>"
    qwen = templates.get_chat_template_by_model_path("Qwen/Qwen2-7B-Instruct")
    assert (qwen.name, tuple(qwen.stop_str)) == ("qwen", ("<|im_end|>",))
    opened = qwen.get_prompt([{"role": "system", "content": None}])
    assert opened == "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    plain = templates.get_chat_template_by_model_path("nobody/knows")
    assert plain.get_prompt([{"role": "system", "content": None}, chat[1]]) == "USER:U\n"
    with pytest.raises(UsageError, match=r"no chat template 'nope'\n.*chatml"):
        templates.get_chat_template("nope")


def test_registered_templates_are_found_and_used(sgl, templates, server):
    def mine(name: str, mark: str) -> Any:
        return templates.ChatTemplate(
            name=name,
            default_system_prompt=None,
            role_prefix_and_suffix={"user": (mark, "\n"), "assistant": ("A:", "\n")},
            stop_str="END",
        )

    templates.register_chat_template(mine("mine", "Q:"))
    templates.register_chat_template_matching_function(
        lambda path: "mine" if "zz" in path else None
    )
    assert templates.get_chat_template_by_model_path("zz/x").name == "mine"
    named = sgl.RuntimeEndpoint(server.url, chat_template_name="mine")
    assert _chat(sgl).run("hi", backend=named).text().startswith("Q:hi\nA:")
    assert server.requests[-1]["sampling_params"]["stop"] == ["END"]
    # A registered template takes the place of the one that the model's path leads to.
    templates.register_chat_template(mine("qwen", "Qwen:"))
    assert _chat(sgl).run("hi", backend=sgl.RuntimeEndpoint(server.url)).text()[:5] == "Qwen:"


# -- utils -----------------------------------------------------------------------------


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


# -- schemas as patterns ---------------------------------------------------------------

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


# -- scripts ---------------------------------------------------------------------------

SCRIPT = """
import argparse
import json
import sys

import sglang as sgl
from sglang.test.test_utils import add_common_sglang_args_and_parse, select_sglang_backend
from sglang.utils import dump_state_text, read_jsonl

from beside import SUFFIX


@sgl.function
def answer(s, question):
    s += sgl.system("Be brief.")
    s += sgl.user(question + SUFFIX)
    s += sgl.assistant(sgl.gen("answer", max_tokens=8, stop="\\n"))


def main(args):
    lines = read_jsonl("questions.jsonl")[: args.num_questions]
    backend = select_sglang_backend(args)
    sgl.set_default_backend(backend)
    backend.flush_cache()
    states = answer.run_batch(
        [{"question": line["question"]} for line in lines],
        temperature=0,
        backend=backend,
        num_threads=args.parallel,
        progress_bar=True,
    )
    dump_state_text(f"tmp_output_{args.backend}.txt", states)
    with open(args.result_file, "a") as out:
        tokens = sum(s.get_meta_info("answer")["completion_tokens"] for s in states)
        value = {"tokens": tokens, "used": backend.token_usage.completion_tokens}
        value |= {"model": backend.get_server_info()["tokenizer_path"], "texts": []}
        value["texts"] += [states[i].text() for i in range(len(states))]
        out.write(json.dumps(value) + "\\n")
    print(sys.argv[0], states[0].ret_value)
    sys.exit(3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-questions", type=int, default=2)
    main(add_common_sglang_args_and_parse(parser))
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "bench.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text('SUFFIX = "?"\n')
    rows = "".join(json.dumps({"question": text}) + "\n" for text in "abc")
    (tmp_path / "questions.jsonl").write_text(rows)
    return tmp_path


def run(folder: Any, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", *words],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


WAYS = {
    "module": ["sgc.compat.sglang"],
    "command": ["sgc", "run", "--as-sglang"],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_benchmark_script_runs_unmodified(script, server, way):
    options = ["--port", str(server.port), "--parallel", "4", "--result-file", "r.jsonl"]
    done = run(script, *WAYS[way], "bench.py", *options, "--num-questions", "3")
    assert (done.returncode, done.stdout) == (3, "bench.py None\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert "Unclosed" not in done.stderr
    result = json.loads((script / "r.jsonl").read_text())
    assert result["model"] == server.model
    assert result["used"] == result["tokens"] > 0
    assert [text.count("<|im_start|>user\n") for text in result["texts"]] == [1, 1, 1]
    assert (script / "tmp_output_srt.txt").read_text().count(result["texts"][2]) == 1


SCRIPT_OF_DEFAULT = """
import sys
import sglang as sgl
@sgl.function
def program(s, x):
    s += x + sgl.gen("a", max_tokens=4, temperature=0)
print(sys.argv[1:], program.run("x").text() != "x", sgl.global_config.default_backend.base_url)
"""


def test_the_default_backend_of_the_command_line(script, server):
    (script / "default.py").write_text(SCRIPT_OF_DEFAULT)
    address = f"sglang+{server.url}"
    done = run(script, "sgc.compat.sglang", "--engine", address, "default.py", "--seed", "-x")
    assert (done.returncode, done.stdout) == (0, f"['--seed', '-x'] True {server.url}\n")


def test_a_script_without_a_server_of_its_own_runs_on_the_command_lines(script, server):
    done = run(script, "sgc", "run", "--as-sglang", "--engine", f"sglang+{server.url}", "bench.py")
    assert done.stderr.count("no server") == 0, done.stderr
    assert json.loads((script / "result.jsonl").read_text())["model"] == server.model


BAD = {
    "no server": ("bench.py --port 1", 1, "bench.py:22: no server at http://127.0.0.1:1"),
    "no key": ("bench.py --backend gpt-4", 1, "no API key for openai\n  set OPENAI_API_KEY"),
    "its own usage": ("bench.py --frobnicate", 2, "unrecognized arguments: --frobnicate"),
    "no script": ("none.py", 1, "sgc: error: none.py: no such file"),
    "no source": ("none.sgir", 2, "expected a Python script"),
    "both": ("--engine unix:x --model fake bench.py", 2, "--model is the engine's own choice"),
    "address": ("--engine ftp://x bench.py", 2, "unknown server address"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_one_message(script, case):
    words, code, message = BAD[case]
    done = run(script, "sgc.compat.sglang", *words.split(), OPENAI_API_KEY="")
    assert message in done.stderr
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr


def test_tracebacks_on_request_and_of_the_scripts_own_errors(script):
    asked = run(script, "sgc.compat.sglang", "bench.py", "--port", "1", SGC_TRACEBACK="1")
    assert "Traceback" in asked.stderr
    assert "sgc: error: bench.py:22" in asked.stderr
    (script / "own.py").write_text("import sglang\n1 / 0\n")
    own = run(script, "sgc.compat.sglang", "own.py")
    assert own.returncode == 1
    assert own.stderr.startswith('Traceback (most recent call last):\n  File "own.py", line 2')
    assert own.stderr.endswith("ZeroDivisionError: division by zero\n")
