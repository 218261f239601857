from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_STOP: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_ARGUMENT: _ClassVar[ErrorCode]
    ERROR_CODE_CONTEXT_EXCEEDED: _ClassVar[ErrorCode]
    ERROR_CODE_RESOURCE_EXHAUSTED: _ClassVar[ErrorCode]
    ERROR_CODE_UNAVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_INTERNAL: _ClassVar[ErrorCode]
    ERROR_CODE_DEADLINE_EXCEEDED: _ClassVar[ErrorCode]
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_STOP: FinishReason
FINISH_REASON_LENGTH: FinishReason
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_INVALID_ARGUMENT: ErrorCode
ERROR_CODE_CONTEXT_EXCEEDED: ErrorCode
ERROR_CODE_RESOURCE_EXHAUSTED: ErrorCode
ERROR_CODE_UNAVAILABLE: ErrorCode
ERROR_CODE_INTERNAL: ErrorCode
ERROR_CODE_DEADLINE_EXCEEDED: ErrorCode

class ClientFrame(_message.Message):
    __slots__ = ("requests", "cancels")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[Request]
    cancels: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, requests: _Optional[_Iterable[_Union[Request, _Mapping]]] = ..., cancels: _Optional[_Iterable[int]] = ...) -> None: ...

class ServerFrame(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    def __init__(self, replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("id", "prompt", "generate", "score", "commit", "prefetch", "embed", "cache_salt", "reusable", "run", "adapter", "timeout_s", "priority", "traceparent")
    ID_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    GENERATE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    EMBED_FIELD_NUMBER: _ClassVar[int]
    CACHE_SALT_FIELD_NUMBER: _ClassVar[int]
    REUSABLE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    id: int
    prompt: Prompt
    generate: Generate
    score: Score
    commit: Commit
    prefetch: Prefetch
    embed: Embed
    cache_salt: bytes
    reusable: Position
    run: ProgramRun
    adapter: str
    timeout_s: float
    priority: int
    traceparent: str
    def __init__(self, id: _Optional[int] = ..., prompt: _Optional[_Union[Prompt, _Mapping]] = ..., generate: _Optional[_Union[Generate, _Mapping]] = ..., score: _Optional[_Union[Score, _Mapping]] = ..., commit: _Optional[_Union[Commit, _Mapping]] = ..., prefetch: _Optional[_Union[Prefetch, _Mapping]] = ..., embed: _Optional[_Union[Embed, _Mapping]] = ..., cache_salt: _Optional[bytes] = ..., reusable: _Optional[_Union[Position, _Mapping]] = ..., run: _Optional[_Union[ProgramRun, _Mapping]] = ..., adapter: _Optional[str] = ..., timeout_s: _Optional[float] = ..., priority: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...

class ProgramRun(_message.Message):
    __slots__ = ("id", "remaining")
    ID_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    id: int
    remaining: int
    def __init__(self, id: _Optional[int] = ..., remaining: _Optional[int] = ...) -> None: ...

class Position(_message.Message):
    __slots__ = ("segment", "offset")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    segment: int
    offset: int
    def __init__(self, segment: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class Prompt(_message.Message):
    __slots__ = ("segments",)
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    def __init__(self, segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("text", "tokens", "joined", "images")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    text: TextRun
    tokens: TokenRun
    joined: Joined
    images: ImageRun
    def __init__(self, text: _Optional[_Union[TextRun, _Mapping]] = ..., tokens: _Optional[_Union[TokenRun, _Mapping]] = ..., joined: _Optional[_Union[Joined, _Mapping]] = ..., images: _Optional[_Union[ImageRun, _Mapping]] = ...) -> None: ...

class Joined(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[Prompt]
    def __init__(self, parts: _Optional[_Iterable[_Union[Prompt, _Mapping]]] = ...) -> None: ...

class TextRun(_message.Message):
    __slots__ = ("text", "literal")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    text: str
    literal: _containers.RepeatedCompositeFieldContainer[Span]
    def __init__(self, text: _Optional[str] = ..., literal: _Optional[_Iterable[_Union[Span, _Mapping]]] = ...) -> None: ...

class ImageRun(_message.Message):
    __slots__ = ("images", "text")
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    images: _containers.RepeatedScalarFieldContainer[bytes]
    text: str
    def __init__(self, images: _Optional[_Iterable[bytes]] = ..., text: _Optional[str] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class TokenRun(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class Generate(_message.Message):
    __slots__ = ("sampling", "stream")
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    sampling: Sampling
    stream: bool
    def __init__(self, sampling: _Optional[_Union[Sampling, _Mapping]] = ..., stream: bool = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("max_tokens", "min_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "seed", "stop", "stop_token_ids", "ignore_eos", "stop_regex", "regex", "json_schema", "grammar", "logit_bias", "heal", "logprobs")
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    STOP_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_EOS_FIELD_NUMBER: _ClassVar[int]
    STOP_REGEX_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    JSON_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    GRAMMAR_FIELD_NUMBER: _ClassVar[int]
    LOGIT_BIAS_FIELD_NUMBER: _ClassVar[int]
    HEAL_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    max_tokens: int
    min_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    frequency_penalty: float
    presence_penalty: float
    repetition_penalty: float
    seed: int
    stop: _containers.RepeatedScalarFieldContainer[str]
    stop_token_ids: _containers.RepeatedScalarFieldContainer[int]
    ignore_eos: bool
    stop_regex: _containers.RepeatedScalarFieldContainer[str]
    regex: str
    json_schema: str
    grammar: str
    logit_bias: _containers.RepeatedCompositeFieldContainer[TokenBias]
    heal: bool
    logprobs: Logprobs
    def __init__(self, max_tokens: _Optional[int] = ..., min_tokens: _Optional[int] = ..., temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., min_p: _Optional[float] = ..., frequency_penalty: _Optional[float] = ..., presence_penalty: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., seed: _Optional[int] = ..., stop: _Optional[_Iterable[str]] = ..., stop_token_ids: _Optional[_Iterable[int]] = ..., ignore_eos: bool = ..., stop_regex: _Optional[_Iterable[str]] = ..., regex: _Optional[str] = ..., json_schema: _Optional[str] = ..., grammar: _Optional[str] = ..., logit_bias: _Optional[_Iterable[_Union[TokenBias, _Mapping]]] = ..., heal: bool = ..., logprobs: _Optional[_Union[Logprobs, _Mapping]] = ...) -> None: ...

class TokenBias(_message.Message):
    __slots__ = ("id", "bias")
    ID_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    id: int
    bias: float
    def __init__(self, id: _Optional[int] = ..., bias: _Optional[float] = ...) -> None: ...

class Logprobs(_message.Message):
    __slots__ = ("start", "top", "text", "stream")
    START_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    start: int
    top: int
    text: bool
    stream: bool
    def __init__(self, start: _Optional[int] = ..., top: _Optional[int] = ..., text: bool = ..., stream: bool = ...) -> None: ...

class Score(_message.Message):
    __slots__ = ("choices",)
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    choices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, choices: _Optional[_Iterable[str]] = ...) -> None: ...

class Commit(_message.Message):
    __slots__ = ("heads",)
    HEADS_FIELD_NUMBER: _ClassVar[int]
    heads: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, heads: _Optional[_Iterable[str]] = ...) -> None: ...

class Prefetch(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Embed(_message.Message):
    __slots__ = ("last",)
    LAST_FIELD_NUMBER: _ClassVar[int]
    last: int
    def __init__(self, last: _Optional[int] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("id", "delta", "generated", "scored", "committed", "error", "embedded")
    ID_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    GENERATED_FIELD_NUMBER: _ClassVar[int]
    SCORED_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_FIELD_NUMBER: _ClassVar[int]
    id: int
    delta: Delta
    generated: Generated
    scored: Scored
    committed: Committed
    error: Error
    embedded: Embedded
    def __init__(self, id: _Optional[int] = ..., delta: _Optional[_Union[Delta, _Mapping]] = ..., generated: _Optional[_Union[Generated, _Mapping]] = ..., scored: _Optional[_Union[Scored, _Mapping]] = ..., committed: _Optional[_Union[Committed, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., embedded: _Optional[_Union[Embedded, _Mapping]] = ...) -> None: ...

class Delta(_message.Message):
    __slots__ = ("text", "logprobs", "prompt_logprobs")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    text: str
    logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    prompt_logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    def __init__(self, text: _Optional[str] = ..., logprobs: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ..., prompt_logprobs: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ...) -> None: ...

class Generated(_message.Message):
    __slots__ = ("text", "ids", "kept", "tail", "finish_reason", "matched", "matched_id", "usage", "head", "logprobs", "prompt_logprobs", "healed")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    MATCHED_ID_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    HEALED_FIELD_NUMBER: _ClassVar[int]
    text: str
    ids: _containers.RepeatedScalarFieldContainer[int]
    kept: int
    tail: str
    finish_reason: FinishReason
    matched: str
    matched_id: int
    usage: Usage
    head: str
    logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    prompt_logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    healed: int
    def __init__(self, text: _Optional[str] = ..., ids: _Optional[_Iterable[int]] = ..., kept: _Optional[int] = ..., tail: _Optional[str] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., matched: _Optional[str] = ..., matched_id: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., head: _Optional[str] = ..., logprobs: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ..., prompt_logprobs: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ..., healed: _Optional[int] = ...) -> None: ...

class TokenLogprob(_message.Message):
    __slots__ = ("id", "logprob", "text", "top")
    ID_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    id: int
    logprob: float
    text: str
    top: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    def __init__(self, id: _Optional[int] = ..., logprob: _Optional[float] = ..., text: _Optional[str] = ..., top: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ...) -> None: ...

class Scored(_message.Message):
    __slots__ = ("choices", "usage")
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    choices: _containers.RepeatedCompositeFieldContainer[ChoiceScore]
    usage: Usage
    def __init__(self, choices: _Optional[_Iterable[_Union[ChoiceScore, _Mapping]]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ...) -> None: ...

class ChoiceScore(_message.Message):
    __slots__ = ("ids", "logprobs", "texts", "before")
    IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: _containers.RepeatedScalarFieldContainer[float]
    texts: _containers.RepeatedScalarFieldContainer[str]
    before: TokenLogprob
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[_Iterable[float]] = ..., texts: _Optional[_Iterable[str]] = ..., before: _Optional[_Union[TokenLogprob, _Mapping]] = ...) -> None: ...

class Embedded(_message.Message):
    __slots__ = ("vector", "usage")
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    vector: _containers.RepeatedScalarFieldContainer[float]
    usage: Usage
    def __init__(self, vector: _Optional[_Iterable[float]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ...) -> None: ...

class Committed(_message.Message):
    __slots__ = ("usage", "gave_way")
    USAGE_FIELD_NUMBER: _ClassVar[int]
    GAVE_WAY_FIELD_NUMBER: _ClassVar[int]
    usage: Usage
    gave_way: bool
    def __init__(self, usage: _Optional[_Union[Usage, _Mapping]] = ..., gave_way: bool = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens", "queue_s", "prefill_s", "decode_s", "forced_tokens", "joined_tokens")
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_S_FIELD_NUMBER: _ClassVar[int]
    PREFILL_S_FIELD_NUMBER: _ClassVar[int]
    DECODE_S_FIELD_NUMBER: _ClassVar[int]
    FORCED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    JOINED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    completion_tokens: int
    queue_s: float
    prefill_s: float
    decode_s: float
    forced_tokens: int
    joined_tokens: int
    def __init__(self, prompt_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., computed_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., queue_s: _Optional[float] = ..., prefill_s: _Optional[float] = ..., decode_s: _Optional[float] = ..., forced_tokens: _Optional[int] = ..., joined_tokens: _Optional[int] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "retry_after_s", "quota")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    QUOTA_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    message: str
    retry_after_s: float
    quota: str
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., message: _Optional[str] = ..., retry_after_s: _Optional[float] = ..., quota: _Optional[str] = ...) -> None: ...

class InfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Info(_message.Message):
    __slots__ = ("engine_version", "model", "tokenizer_fingerprint", "template_fingerprint", "max_context", "pool_tokens", "vocab_size", "max_in_flight", "max_message_bytes", "chat", "special_tokens", "dtype", "device", "weights", "accuracy", "kv", "pooling", "hidden_size", "takes_joined", "adapters", "images")
    ENGINE_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    POOL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHAT_FIELD_NUMBER: _ClassVar[int]
    SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    KV_FIELD_NUMBER: _ClassVar[int]
    POOLING_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_SIZE_FIELD_NUMBER: _ClassVar[int]
    TAKES_JOINED_FIELD_NUMBER: _ClassVar[int]
    ADAPTERS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    engine_version: str
    model: str
    tokenizer_fingerprint: str
    template_fingerprint: str
    max_context: int
    pool_tokens: int
    vocab_size: int
    max_in_flight: int
    max_message_bytes: int
    chat: ChatFormat
    special_tokens: _containers.RepeatedScalarFieldContainer[str]
    dtype: str
    device: str
    weights: str
    accuracy: Accuracy
    kv: str
    pooling: str
    hidden_size: int
    takes_joined: bool
    adapters: _containers.RepeatedCompositeFieldContainer[Adapter]
    images: ImageFormat
    def __init__(self, engine_version: _Optional[str] = ..., model: _Optional[str] = ..., tokenizer_fingerprint: _Optional[str] = ..., template_fingerprint: _Optional[str] = ..., max_context: _Optional[int] = ..., pool_tokens: _Optional[int] = ..., vocab_size: _Optional[int] = ..., max_in_flight: _Optional[int] = ..., max_message_bytes: _Optional[int] = ..., chat: _Optional[_Union[ChatFormat, _Mapping]] = ..., special_tokens: _Optional[_Iterable[str]] = ..., dtype: _Optional[str] = ..., device: _Optional[str] = ..., weights: _Optional[str] = ..., accuracy: _Optional[_Union[Accuracy, _Mapping]] = ..., kv: _Optional[str] = ..., pooling: _Optional[str] = ..., hidden_size: _Optional[int] = ..., takes_joined: bool = ..., adapters: _Optional[_Iterable[_Union[Adapter, _Mapping]]] = ..., images: _Optional[_Union[ImageFormat, _Mapping]] = ...) -> None: ...

class Adapter(_message.Message):
    __slots__ = ("name", "fingerprint", "rank")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    name: str
    fingerprint: str
    rank: int
    def __init__(self, name: _Optional[str] = ..., fingerprint: _Optional[str] = ..., rank: _Optional[int] = ...) -> None: ...

class ImageFormat(_message.Message):
    __slots__ = ("token", "text", "max_images", "max_bytes")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MAX_IMAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    token: str
    text: str
    max_images: int
    max_bytes: int
    def __init__(self, token: _Optional[str] = ..., text: _Optional[str] = ..., max_images: _Optional[int] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class Accuracy(_message.Message):
    __slots__ = ("tokens", "cross_entropy", "own_cross_entropy", "divergence", "equal_share")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CROSS_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    OWN_CROSS_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    DIVERGENCE_FIELD_NUMBER: _ClassVar[int]
    EQUAL_SHARE_FIELD_NUMBER: _ClassVar[int]
    tokens: int
    cross_entropy: float
    own_cross_entropy: float
    divergence: float
    equal_share: float
    def __init__(self, tokens: _Optional[int] = ..., cross_entropy: _Optional[float] = ..., own_cross_entropy: _Optional[float] = ..., divergence: _Optional[float] = ..., equal_share: _Optional[float] = ...) -> None: ...

class ChatFormat(_message.Message):
    __slots__ = ("roles", "default_system", "from_model", "prefix_stable")
    class RolesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: RoleFormat
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[RoleFormat, _Mapping]] = ...) -> None: ...
    ROLES_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    FROM_MODEL_FIELD_NUMBER: _ClassVar[int]
    PREFIX_STABLE_FIELD_NUMBER: _ClassVar[int]
    roles: _containers.MessageMap[str, RoleFormat]
    default_system: str
    from_model: bool
    prefix_stable: bool
    def __init__(self, roles: _Optional[_Mapping[str, RoleFormat]] = ..., default_system: _Optional[str] = ..., from_model: bool = ..., prefix_stable: bool = ...) -> None: ...

class RoleFormat(_message.Message):
    __slots__ = ("prefix", "suffix")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    SUFFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    suffix: str
    def __init__(self, prefix: _Optional[str] = ..., suffix: _Optional[str] = ...) -> None: ...

class StatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Stats(_message.Message):
    __slots__ = ("requests", "prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens", "positions_run", "steps", "preemptions", "evicted_tokens", "pool_tokens", "free_tokens", "cached_pool_tokens", "running_requests", "waiting_requests", "finished_requests", "refused_requests", "cancelled_requests", "failed_requests", "evictable_tokens", "parked_requests", "sampled_tokens", "forward_s", "busy_s", "in_flight_requests", "sessions", "forced_tokens", "prefetches", "prefetched_tokens", "dropped_prefetches", "waiting_prefetches", "speculated_tokens", "accepted_tokens", "programs", "first_programs", "disk_loads", "disk_loaded_tokens", "disk_written_bytes", "disk_damaged_files", "disk_dropped_chunks", "disk_bytes", "encoded_images", "reused_images", "encoded_images_bytes", "expired_requests")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_RUN_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONS_FIELD_NUMBER: _ClassVar[int]
    EVICTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    POOL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FREE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_POOL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    WAITING_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    EVICTABLE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PARKED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FORWARD_S_FIELD_NUMBER: _ClassVar[int]
    BUSY_S_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    FORCED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREFETCHES_FIELD_NUMBER: _ClassVar[int]
    PREFETCHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_PREFETCHES_FIELD_NUMBER: _ClassVar[int]
    WAITING_PREFETCHES_FIELD_NUMBER: _ClassVar[int]
    SPECULATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    FIRST_PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    DISK_LOADS_FIELD_NUMBER: _ClassVar[int]
    DISK_LOADED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DISK_WRITTEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_DAMAGED_FILES_FIELD_NUMBER: _ClassVar[int]
    DISK_DROPPED_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    ENCODED_IMAGES_FIELD_NUMBER: _ClassVar[int]
    REUSED_IMAGES_FIELD_NUMBER: _ClassVar[int]
    ENCODED_IMAGES_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: int
    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    completion_tokens: int
    positions_run: int
    steps: int
    preemptions: int
    evicted_tokens: int
    pool_tokens: int
    free_tokens: int
    cached_pool_tokens: int
    running_requests: int
    waiting_requests: int
    finished_requests: int
    refused_requests: int
    cancelled_requests: int
    failed_requests: int
    evictable_tokens: int
    parked_requests: int
    sampled_tokens: int
    forward_s: float
    busy_s: float
    in_flight_requests: int
    sessions: int
    forced_tokens: int
    prefetches: int
    prefetched_tokens: int
    dropped_prefetches: int
    waiting_prefetches: int
    speculated_tokens: int
    accepted_tokens: int
    programs: int
    first_programs: _containers.RepeatedCompositeFieldContainer[ProgramNow]
    disk_loads: int
    disk_loaded_tokens: int
    disk_written_bytes: int
    disk_damaged_files: int
    disk_dropped_chunks: int
    disk_bytes: int
    encoded_images: int
    reused_images: int
    encoded_images_bytes: int
    expired_requests: int
    def __init__(self, requests: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., computed_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., positions_run: _Optional[int] = ..., steps: _Optional[int] = ..., preemptions: _Optional[int] = ..., evicted_tokens: _Optional[int] = ..., pool_tokens: _Optional[int] = ..., free_tokens: _Optional[int] = ..., cached_pool_tokens: _Optional[int] = ..., running_requests: _Optional[int] = ..., waiting_requests: _Optional[int] = ..., finished_requests: _Optional[int] = ..., refused_requests: _Optional[int] = ..., cancelled_requests: _Optional[int] = ..., failed_requests: _Optional[int] = ..., evictable_tokens: _Optional[int] = ..., parked_requests: _Optional[int] = ..., sampled_tokens: _Optional[int] = ..., forward_s: _Optional[float] = ..., busy_s: _Optional[float] = ..., in_flight_requests: _Optional[int] = ..., sessions: _Optional[int] = ..., forced_tokens: _Optional[int] = ..., prefetches: _Optional[int] = ..., prefetched_tokens: _Optional[int] = ..., dropped_prefetches: _Optional[int] = ..., waiting_prefetches: _Optional[int] = ..., speculated_tokens: _Optional[int] = ..., accepted_tokens: _Optional[int] = ..., programs: _Optional[int] = ..., first_programs: _Optional[_Iterable[_Union[ProgramNow, _Mapping]]] = ..., disk_loads: _Optional[int] = ..., disk_loaded_tokens: _Optional[int] = ..., disk_written_bytes: _Optional[int] = ..., disk_damaged_files: _Optional[int] = ..., disk_dropped_chunks: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., encoded_images: _Optional[int] = ..., reused_images: _Optional[int] = ..., encoded_images_bytes: _Optional[int] = ..., expired_requests: _Optional[int] = ...) -> None: ...

class ProgramNow(_message.Message):
    __slots__ = ("running", "waiting", "generated_tokens", "remaining", "since_s")
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    GENERATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    running: int
    waiting: int
    generated_tokens: int
    remaining: int
    since_s: float
    def __init__(self, running: _Optional[int] = ..., waiting: _Optional[int] = ..., generated_tokens: _Optional[int] = ..., remaining: _Optional[int] = ..., since_s: _Optional[float] = ...) -> None: ...

class FlushCacheRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FlushCacheReply(_message.Message):
    __slots__ = ("freed_tokens",)
    FREED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    freed_tokens: int
    def __init__(self, freed_tokens: _Optional[int] = ...) -> None: ...
