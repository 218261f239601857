"""Extracts orders into pydantic models with nested lists and a validator, repairing what fails."""

from typing import Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

import sgc


class Line(BaseModel):
    sku: str = Field(min_length=1)
    quantity: int = Field(ge=1, le=99)
    price: float = 0.0

    @property
    def total(self) -> float:
        return self.quantity * self.price


class Order(BaseModel):
    customer: str
    priority: Literal["low", "high"] = "low"
    lines: list[Line] = []

    @field_validator("customer")
    @classmethod
    def strip(cls, v: str) -> str:
        v = v.strip()
        if not v:
            raise ValueError("customer is empty")
        return v


@sgc.function
def program(s, mail: str, tries: int = 3):
    s += f"Mail: {mail}\nOrder as JSON:"
    errors = []
    for attempt in range(tries):
        s += sgc.gen("order", max_tokens=120, stop="\n\n")
        try:
            order = Order.model_validate_json(s["order"])
        except ValidationError as e:
            problems = [f"{'.'.join(str(p) for p in x['loc'])}: {x['msg']}" for x in e.errors()]
            errors.append(len(problems))
            s += "\nProblems:\n" + "\n".join(problems) + "\nAgain:"
            continue
        total = sum(line.total for line in order.lines)
        s += f"\nTotal: {total:.2f} EUR, {order.priority}"
        return {"order": order.model_dump(), "total": total, "errors": errors}
    return {"order": None, "total": 0, "errors": errors}


ARGUMENTS = [{"mail": "Two pens please"}, {"mail": "", "tries": 1}]
REPLIES = [
    '{"customer": " Ann ", "lines": [{"sku": "pen", "quantity": 2, "price": 1.5}]}',
    '{"customer": "Bo", "priority": "high"}',
    '{"customer": "", "lines": [{"sku": "", "quantity": 0}]}',
    "not json",
]
