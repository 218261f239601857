"""SGLang's classes of expressions: `isinstance` is true of sgc's, and calling one makes sgc's."""

from __future__ import annotations

from typing import Any, ClassVar

from sgc.lang import words


class _Class(type):
    """A class that stands for one of sgc's classes."""

    of: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.of)


class SglGen(metaclass=_Class):
    of: ClassVar[type] = words.Gen

    def __new__(  # type: ignore[misc]
        cls,
        name: str | None = None,
        max_new_tokens: int | None = None,
        min_new_tokens: int | None = None,
        *rest: Any,
        **more: Any,
    ) -> words.Expr:
        return words.gen(name, max_new_tokens, min_new_tokens, *rest, **more)


class SglSelect(metaclass=_Class):
    of: ClassVar[type] = words.Select

    def __new__(  # type: ignore[misc]
        cls, name: str, choices: list[str], temperature: float = 0.0, choices_method: Any = None
    ) -> words.Expr:
        return words.select(name, choices, temperature, choices_method)


class SglExprList(metaclass=_Class):
    of: ClassVar[type] = words.Sequenced

    def __new__(cls, expr_list: list[words.Appendable]) -> words.Expr:  # type: ignore[misc]
        return words.Sequenced(tuple(expr_list))


class SglConstantText(metaclass=_Class):
    """A text; sgc's expressions hold plain texts."""

    of: ClassVar[type] = str

    def __new__(cls, value: str) -> words.Expr:  # type: ignore[misc]
        return words.Sequenced((value,))


class SglSeparateReasoning(metaclass=_Class):
    of: ClassVar[type] = words.SeparateReasoning

    def __new__(cls, model_type: str, expr: words.Appendable) -> words.Expr:  # type: ignore[misc]
        return words.SeparateReasoning(expr, model_type)
