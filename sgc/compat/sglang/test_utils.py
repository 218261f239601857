"""SGLang's `test.test_utils`: the command line that its benchmark scripts share."""

from __future__ import annotations

import argparse
import json
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sgc.compat.sglang.backends.providers import OpenAI
from sgc.compat.sglang.backends.runtime_endpoint import RuntimeEndpoint
from sgc.compat.sglang.settings.config import global_config
from sgc.compat.sglang.utils import normalize_base_url
from sgc.errors import SgcError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import get_default_backend

DEFAULT_MODEL_NAME_FOR_TEST = "meta-llama/Llama-3.1-8B-Instruct"
DEFAULT_SMALL_MODEL_NAME_FOR_TEST = "meta-llama/Llama-3.2-1B-Instruct"
DEFAULT_SMALL_MODEL_NAME_FOR_TEST_BASE = "meta-llama/Llama-3.2-1B"
DEFAULT_SMALL_MODEL_NAME_FOR_TEST_QWEN = "Qwen/Qwen2.5-1.5B-Instruct"
DEFAULT_MOE_MODEL_NAME_FOR_TEST = "mistralai/Mixtral-8x7B-Instruct-v0.1"
DEFAULT_MLA_MODEL_NAME_FOR_TEST = "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct"
DEFAULT_REASONING_MODEL_NAME_FOR_TEST = "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"
DEFAULT_ENABLE_THINKING_MODEL_NAME_FOR_TEST = "Qwen/Qwen3-30B-A3B"
DEFAULT_SMALL_VLM_MODEL_NAME_FOR_TEST = "Qwen/Qwen2.5-VL-3B-Instruct"
DEFAULT_EAGLE_TARGET_MODEL_FOR_TEST = "meta-llama/Llama-2-7b-chat-hf"
DEFAULT_EAGLE_DRAFT_MODEL_FOR_TEST = "lmsys/sglang-EAGLE-llama2-chat-7B"
DEFAULT_TIMEOUT_FOR_SERVER_LAUNCH = 600
DEFAULT_PORT_FOR_SRT_TEST_RUNNER = 20000
DEFAULT_URL_FOR_TEST = f"http://127.0.0.1:{DEFAULT_PORT_FOR_SRT_TEST_RUNNER + 1000}"
DEFAULT_IMAGE_URL = (
    "https://github.com/sgl-project/sglang/blob/main/test/lang/example_image.png?raw=true"
)


class CustomTestCase(unittest.TestCase):
    """A test case; SGLang's own retries failed tests in its CI."""


_HOST, _PORT = "http://127.0.0.1", 30000


def add_common_sglang_args_and_parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Adds the options of every benchmark script, and parses the command line."""
    parser.add_argument("--parallel", type=int, default=64)
    parser.add_argument("--host", type=str, default=_HOST)
    parser.add_argument("--port", type=int, default=_PORT)
    parser.add_argument("--backend", type=str, default="srt")
    devices = ["auto", "cuda", "rocm", "cpu"]
    parser.add_argument("--device", type=str, default="auto", choices=devices)
    parser.add_argument("--result-file", type=str, default="result.jsonl")
    parser.add_argument("--raw-result-file", type=str)
    return parser.parse_args()


def select_sglang_backend(args: argparse.Namespace) -> Endpoint:
    """The backend that `--backend`, `--host` and `--port` name.

    If the script's command line names no server, the default backend is used if there is one, such
    as that of `sgc run --as-sglang`.
    """
    if args.backend.startswith("srt"):
        if args.backend == "srt-no-parallel":
            global_config.enable_parallel_encoding = False
        chosen = get_default_backend()
        if (args.host, args.port) == (_HOST, _PORT) and chosen is not None:
            return chosen
        return RuntimeEndpoint(normalize_base_url(args.host, args.port))
    if args.backend.startswith("gpt-"):
        return OpenAI(args.backend)
    raise UsageError(
        f"unknown --backend {args.backend!r}", hint="use srt, srt-no-parallel or gpt-…"
    )


def dump_bench_raw_result(
    path: str | None, states: Sequence[Any], preds: Sequence[Any], labels: Sequence[Any]
) -> None:
    """Writes each run's prompt, answer and correctness as JSON lines, if a path is given."""
    if not path:
        return
    rows = [_raw_row(index, state, preds, labels) for index, state in enumerate(states)]
    Path(path).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    print(f"raw results are in {path}")


def _raw_row(index: int, state: Any, preds: Sequence[Any], labels: Sequence[Any]) -> dict[str, Any]:
    output = state["answer"]
    text = state.text()
    if not text.endswith(output):
        raise SgcError(f"the text of run {index} does not end with its answer")
    return {
        "prompt_id": index,
        "prompt": text.removesuffix(output),
        "output": output,
        "correct": bool(preds[index] == labels[index]),
    }
