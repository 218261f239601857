"""SGLang's server arguments: which of them our engine uses, and which it ignores.

`Runtime` takes them as keywords. An argument that only decides how fast or where a server runs
is accepted and ignored; one that would change results, or that is unknown, is an error that
names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.errors import UsageError

# SGLang's (or our own) name of an argument, and that of `sgc serve`.
_MEANT = {
    "context_length": "max_context",
    "max_total_tokens": "pool_tokens",
    "chunked_prefill_size": "chunk_tokens",
    "max_running_requests": "max_running",
    "max_queued_requests": "max_waiting",
    "max_context": "max_context",
    "pool_tokens": "pool_tokens",
    "chunk_tokens": "chunk_tokens",
    "max_running": "max_running",
    "max_waiting": "max_waiting",
    "policy": "policy",
    "check": "check",
}
_DTYPES = {
    "auto": "auto",
    "bfloat16": "bfloat16",
    "float": "float32",
    "float32": "float32",
}
# Arguments that change no result, by what they decide.
_WHERE = """
host port additional_ports nccl_port device base_gpu_id gpu_id_step tp_size dp_size pp_size
ep_size nnodes node_rank dist_init_addr dist_timeout api_key served_model_name
skip_server_warmup watchdog_timeout trust_remote_code tokenizer_mode download_dir
"""
_HOW_FAST = """
mem_fraction_static max_prefill_tokens schedule_policy
schedule_conservativeness stream_interval page_size disable_radix_cache attention_backend
prefill_attention_backend decode_attention_backend sampling_backend mm_attention_backend
grammar_backend attention_reduce_in_fp32 triton_attention_num_kv_splits
triton_attention_reduce_in_fp32 disable_cuda_graph disable_cuda_graph_padding cuda_graph_bs
cuda_graph_max_bs enable_torch_compile torch_compile_max_bs disable_overlap_schedule
enable_mixed_chunk disable_custom_all_reduce enable_p2p_check enable_dp_attention
num_continuous_decode_steps disable_flashinfer disable_flashinfer_sampling disable_disk_cache
disable_outlines_disk_cache enable_memory_saver disable_regex_jump_forward load_balance_method
enable_hierarchical_cache hicache_ratio hicache_size
"""
_WHAT_IT_SAYS = """
log_level log_level_http log_requests log_requests_level show_time_cost enable_metrics
decode_log_interval enable_cache_report crash_dump_folder stream_output
"""
_NO_EFFECT = frozenset((_WHERE + _HOW_FAST + _WHAT_IT_SAYS).split())


class ServerArgs:
    """The arguments of a server, as attributes; raises UsageError for those it cannot take."""

    def __init__(self, model_path: str | None = None, **settings: Any) -> None:
        self.model_path = model_path
        self.chat_template: str | None = settings.pop("chat_template", None)
        self.tokenizer_path: str | None = settings.pop("tokenizer_path", None) or model_path
        if self.tokenizer_path != model_path:
            raise UsageError(
                f"tokenizer_path={self.tokenizer_path!r} is not model_path={model_path!r}; "
                "an engine of sgc takes the tokenizer of its model"
            )
        self.settings: Mapping[str, Any] = settings
        self.engine_settings = _engine_settings(settings)

    def __getattr__(self, name: str) -> Any:
        settings = self.__dict__.get("settings", {})
        if name in settings:
            return settings[name]
        given = ", ".join(["model_path", "tokenizer_path", "chat_template", *settings])
        raise AttributeError(f"ServerArgs was given no {name!r}, only: {given}", name=name)


def _engine_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options to start `sgc serve` with."""
    found: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in settings.items():
        if name in _MEANT:
            # In SGLang -1 means "no limit", and None its own choice.
            found[_MEANT[name]] = None if value == -1 else value
        elif name == "dtype":
            found["dtype"] = _dtype(value)
        elif name not in _NO_EFFECT and value is not None and value is not False:
            unknown.append(name)
    if unknown:
        raise UsageError(
            f"an engine of sgc has no argument {', '.join(unknown)}",
            hint=f"it takes: model_path, chat_template, dtype, {', '.join(_MEANT)}; "
            "and SGLang's arguments that change no result, which do nothing here",
        )
    return found


def _dtype(value: Any) -> str | None:
    if value is None:
        return None
    if value not in _DTYPES:
        raise UsageError(f"dtype must be one of {', '.join(_DTYPES)}, found {value!r}")
    return _DTYPES[value]
