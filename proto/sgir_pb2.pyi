from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Program(_message.Message):
    __slots__ = ("op_table_version", "name", "strings", "types", "values", "operands", "params", "blocks", "nodes", "guards", "receipts", "called")
    OP_TABLE_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    OPERANDS_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    CALLED_FIELD_NUMBER: _ClassVar[int]
    op_table_version: int
    name: int
    strings: _containers.RepeatedScalarFieldContainer[str]
    types: _containers.RepeatedCompositeFieldContainer[Type]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    operands: _containers.RepeatedCompositeFieldContainer[Operand]
    params: _containers.RepeatedCompositeFieldContainer[Param]
    blocks: _containers.RepeatedCompositeFieldContainer[Block]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    guards: _containers.RepeatedCompositeFieldContainer[Guard]
    receipts: _containers.RepeatedCompositeFieldContainer[Receipt]
    called: _containers.RepeatedCompositeFieldContainer[Program]
    def __init__(self, op_table_version: _Optional[int] = ..., name: _Optional[int] = ..., strings: _Optional[_Iterable[str]] = ..., types: _Optional[_Iterable[_Union[Type, _Mapping]]] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ..., operands: _Optional[_Iterable[_Union[Operand, _Mapping]]] = ..., params: _Optional[_Iterable[_Union[Param, _Mapping]]] = ..., blocks: _Optional[_Iterable[_Union[Block, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., guards: _Optional[_Iterable[_Union[Guard, _Mapping]]] = ..., receipts: _Optional[_Iterable[_Union[Receipt, _Mapping]]] = ..., called: _Optional[_Iterable[_Union[Program, _Mapping]]] = ...) -> None: ...

class Type(_message.Message):
    __slots__ = ("kind", "items", "options")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    kind: int
    items: _containers.RepeatedScalarFieldContainer[int]
    options: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kind: _Optional[int] = ..., items: _Optional[_Iterable[int]] = ..., options: _Optional[_Iterable[int]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("name", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: int
    type: int
    def __init__(self, name: _Optional[int] = ..., type: _Optional[int] = ...) -> None: ...

class Operand(_message.Message):
    __slots__ = ("value", "text", "integer", "number", "boolean", "none", "list")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    NONE_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    value: int
    text: int
    integer: int
    number: float
    boolean: bool
    none: bool
    list: List
    def __init__(self, value: _Optional[int] = ..., text: _Optional[int] = ..., integer: _Optional[int] = ..., number: _Optional[float] = ..., boolean: bool = ..., none: bool = ..., list: _Optional[_Union[List, _Mapping]] = ...) -> None: ...

class List(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, items: _Optional[_Iterable[int]] = ...) -> None: ...

class Param(_message.Message):
    __slots__ = ("value", "has_default", "default")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HAS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    value: int
    has_default: bool
    default: int
    def __init__(self, value: _Optional[int] = ..., has_default: bool = ..., default: _Optional[int] = ...) -> None: ...

class Block(_message.Message):
    __slots__ = ("name", "params", "n_nodes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    N_NODES_FIELD_NUMBER: _ClassVar[int]
    name: int
    params: _containers.RepeatedScalarFieldContainer[int]
    n_nodes: int
    def __init__(self, name: _Optional[int] = ..., params: _Optional[_Iterable[int]] = ..., n_nodes: _Optional[int] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("op", "results", "fields", "file", "line", "function")
    OP_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    op: int
    results: _containers.RepeatedScalarFieldContainer[int]
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    file: int
    line: int
    function: int
    def __init__(self, op: _Optional[int] = ..., results: _Optional[_Iterable[int]] = ..., fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ..., file: _Optional[int] = ..., line: _Optional[int] = ..., function: _Optional[int] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("name", "operand")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERAND_FIELD_NUMBER: _ClassVar[int]
    name: int
    operand: int
    def __init__(self, name: _Optional[int] = ..., operand: _Optional[int] = ...) -> None: ...

class Guard(_message.Message):
    __slots__ = ("kind", "name", "value")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    kind: int
    name: int
    value: int
    def __init__(self, kind: _Optional[int] = ..., name: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("preserves", "summary", "nodes_before", "nodes_after", "details")
    PASS_FIELD_NUMBER: _ClassVar[int]
    PRESERVES_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    NODES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    NODES_AFTER_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    preserves: int
    summary: int
    nodes_before: int
    nodes_after: int
    details: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, preserves: _Optional[int] = ..., summary: _Optional[int] = ..., nodes_before: _Optional[int] = ..., nodes_after: _Optional[int] = ..., details: _Optional[_Iterable[int]] = ..., **kwargs) -> None: ...
