"""SGLang's front end under its own name: every name that programs import."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from sgc.compat.sglang import install
from sgc.errors import UsageError

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
