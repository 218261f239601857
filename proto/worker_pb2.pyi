from sgc.proto import engine_pb2 as _engine_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Ready(_message.Message):
    __slots__ = ("error", "max_context", "pool_tokens", "vocab_size", "dtype", "device", "weights", "accuracy", "kv", "hidden_size", "takes_images")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    POOL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    KV_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_SIZE_FIELD_NUMBER: _ClassVar[int]
    TAKES_IMAGES_FIELD_NUMBER: _ClassVar[int]
    error: str
    max_context: int
    pool_tokens: int
    vocab_size: int
    dtype: str
    device: str
    weights: str
    accuracy: _engine_pb2.Accuracy
    kv: str
    hidden_size: int
    takes_images: bool
    def __init__(self, error: _Optional[str] = ..., max_context: _Optional[int] = ..., pool_tokens: _Optional[int] = ..., vocab_size: _Optional[int] = ..., dtype: _Optional[str] = ..., device: _Optional[str] = ..., weights: _Optional[str] = ..., accuracy: _Optional[_Union[_engine_pb2.Accuracy, _Mapping]] = ..., kv: _Optional[str] = ..., hidden_size: _Optional[int] = ..., takes_images: bool = ...) -> None: ...

class StepInput(_message.Message):
    __slots__ = ("requests", "cancels", "flush_cache", "want_stats")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    FLUSH_CACHE_FIELD_NUMBER: _ClassVar[int]
    WANT_STATS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[WorkerRequest]
    cancels: _containers.RepeatedScalarFieldContainer[int]
    flush_cache: bool
    want_stats: bool
    def __init__(self, requests: _Optional[_Iterable[_Union[WorkerRequest, _Mapping]]] = ..., cancels: _Optional[_Iterable[int]] = ..., flush_cache: bool = ..., want_stats: bool = ...) -> None: ...

class WorkerRequest(_message.Message):
    __slots__ = ("id", "tokens", "generate", "score", "commit", "prefetch", "embed", "namespace", "n_reusable", "grammar", "n_healed_chars", "free_after", "owner", "run", "adapter", "joins", "images", "priority")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    GENERATE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    EMBED_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    N_REUSABLE_FIELD_NUMBER: _ClassVar[int]
    GRAMMAR_FIELD_NUMBER: _ClassVar[int]
    N_HEALED_CHARS_FIELD_NUMBER: _ClassVar[int]
    FREE_AFTER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    JOINS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    id: int
    tokens: _containers.RepeatedScalarFieldContainer[int]
    generate: _engine_pb2.Sampling
    score: ScoreChoices
    commit: CommitTokens
    prefetch: CommitTokens
    embed: EmbedTokens
    namespace: bytes
    n_reusable: int
    grammar: str
    n_healed_chars: int
    free_after: int
    owner: bytes
    run: _engine_pb2.ProgramRun
    adapter: int
    joins: _containers.RepeatedCompositeFieldContainer[Join]
    images: _containers.RepeatedCompositeFieldContainer[PlacedImage]
    priority: int
    def __init__(self, id: _Optional[int] = ..., tokens: _Optional[_Iterable[int]] = ..., generate: _Optional[_Union[_engine_pb2.Sampling, _Mapping]] = ..., score: _Optional[_Union[ScoreChoices, _Mapping]] = ..., commit: _Optional[_Union[CommitTokens, _Mapping]] = ..., prefetch: _Optional[_Union[CommitTokens, _Mapping]] = ..., embed: _Optional[_Union[EmbedTokens, _Mapping]] = ..., namespace: _Optional[bytes] = ..., n_reusable: _Optional[int] = ..., grammar: _Optional[str] = ..., n_healed_chars: _Optional[int] = ..., free_after: _Optional[int] = ..., owner: _Optional[bytes] = ..., run: _Optional[_Union[_engine_pb2.ProgramRun, _Mapping]] = ..., adapter: _Optional[int] = ..., joins: _Optional[_Iterable[_Union[Join, _Mapping]]] = ..., images: _Optional[_Iterable[_Union[PlacedImage, _Mapping]]] = ..., priority: _Optional[int] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("start", "parts")
    START_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    start: int
    parts: _containers.RepeatedCompositeFieldContainer[JoinedPart]
    def __init__(self, start: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[JoinedPart, _Mapping]]] = ...) -> None: ...

class JoinedPart(_message.Message):
    __slots__ = ("end", "joins")
    END_FIELD_NUMBER: _ClassVar[int]
    JOINS_FIELD_NUMBER: _ClassVar[int]
    end: int
    joins: _containers.RepeatedCompositeFieldContainer[Join]
    def __init__(self, end: _Optional[int] = ..., joins: _Optional[_Iterable[_Union[Join, _Mapping]]] = ...) -> None: ...

class PlacedImage(_message.Message):
    __slots__ = ("digest", "arrays", "starts", "lengths", "grid")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    GRID_FIELD_NUMBER: _ClassVar[int]
    digest: bytes
    arrays: _containers.RepeatedCompositeFieldContainer[Array]
    starts: _containers.RepeatedScalarFieldContainer[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    grid: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, digest: _Optional[bytes] = ..., arrays: _Optional[_Iterable[_Union[Array, _Mapping]]] = ..., starts: _Optional[_Iterable[int]] = ..., lengths: _Optional[_Iterable[int]] = ..., grid: _Optional[_Iterable[int]] = ...) -> None: ...

class Array(_message.Message):
    __slots__ = ("name", "dtype", "shape", "data")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ScoreChoices(_message.Message):
    __slots__ = ("choices",)
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    choices: _containers.RepeatedCompositeFieldContainer[TokenIds]
    def __init__(self, choices: _Optional[_Iterable[_Union[TokenIds, _Mapping]]] = ...) -> None: ...

class TokenIds(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class CommitTokens(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EmbedTokens(_message.Message):
    __slots__ = ("pooling",)
    POOLING_FIELD_NUMBER: _ClassVar[int]
    pooling: str
    def __init__(self, pooling: _Optional[str] = ...) -> None: ...

class StepOutput(_message.Message):
    __slots__ = ("updates", "stats", "flushed", "flushed_tokens")
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    FLUSHED_FIELD_NUMBER: _ClassVar[int]
    FLUSHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    updates: _containers.RepeatedCompositeFieldContainer[Update]
    stats: _engine_pb2.Stats
    flushed: bool
    flushed_tokens: int
    def __init__(self, updates: _Optional[_Iterable[_Union[Update, _Mapping]]] = ..., stats: _Optional[_Union[_engine_pb2.Stats, _Mapping]] = ..., flushed: bool = ..., flushed_tokens: _Optional[int] = ...) -> None: ...

class Update(_message.Message):
    __slots__ = ("id", "new_ids", "final", "finish_reason", "matched", "matched_id", "choices", "usage", "error", "logprobs", "prompt_logprobs", "by_pattern", "n_over", "gave_way", "embedding")
    ID_FIELD_NUMBER: _ClassVar[int]
    NEW_IDS_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    MATCHED_ID_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    BY_PATTERN_FIELD_NUMBER: _ClassVar[int]
    N_OVER_FIELD_NUMBER: _ClassVar[int]
    GAVE_WAY_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    id: int
    new_ids: _containers.RepeatedScalarFieldContainer[int]
    final: bool
    finish_reason: _engine_pb2.FinishReason
    matched: str
    matched_id: int
    choices: _containers.RepeatedCompositeFieldContainer[ChoiceLogprobs]
    usage: _engine_pb2.Usage
    error: _engine_pb2.Error
    logprobs: _containers.RepeatedCompositeFieldContainer[_engine_pb2.TokenLogprob]
    prompt_logprobs: _containers.RepeatedCompositeFieldContainer[_engine_pb2.TokenLogprob]
    by_pattern: bool
    n_over: int
    gave_way: bool
    embedding: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, id: _Optional[int] = ..., new_ids: _Optional[_Iterable[int]] = ..., final: bool = ..., finish_reason: _Optional[_Union[_engine_pb2.FinishReason, str]] = ..., matched: _Optional[str] = ..., matched_id: _Optional[int] = ..., choices: _Optional[_Iterable[_Union[ChoiceLogprobs, _Mapping]]] = ..., usage: _Optional[_Union[_engine_pb2.Usage, _Mapping]] = ..., error: _Optional[_Union[_engine_pb2.Error, _Mapping]] = ..., logprobs: _Optional[_Iterable[_Union[_engine_pb2.TokenLogprob, _Mapping]]] = ..., prompt_logprobs: _Optional[_Iterable[_Union[_engine_pb2.TokenLogprob, _Mapping]]] = ..., by_pattern: bool = ..., n_over: _Optional[int] = ..., gave_way: bool = ..., embedding: _Optional[_Iterable[float]] = ...) -> None: ...

class ChoiceLogprobs(_message.Message):
    __slots__ = ("logprobs",)
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    logprobs: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, logprobs: _Optional[_Iterable[float]] = ...) -> None: ...
