"""A judge that must answer in JSON; pydantic validates it, and errors go back to the model."""

import json
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

import sgc


class Verdict(BaseModel):
    verdict: Literal["correct", "incorrect", "unsure"]
    confidence: float = Field(ge=0, le=1)
    reason: str = ""


def strip_fences(text: str) -> str:
    text = text.strip()
    if text.startswith("```"):
        text = text.split("\n", 1)[-1]
        text = text.rsplit("```", 1)[0]
    return text


@sgc.function
def program(s, question: str, answer: str, max_retries: int = 2):
    s += sgc.system("You grade answers. Reply with JSON only: verdict, confidence, reason.")
    s += sgc.user(f"Q: {question}\nA: {answer}")
    errors = []
    for attempt in range(max_retries + 1):
        s += sgc.assistant(sgc.gen("raw", max_tokens=96))
        try:
            verdict = Verdict.model_validate(json.loads(strip_fences(s["raw"])))
        except json.JSONDecodeError as e:
            errors.append(f"not JSON: {e.msg}")
        except ValidationError as e:
            errors.append(
                "; ".join(
                    f"{err['loc'][0] if err['loc'] else 'root'}: {err['type']}"
                    for err in e.errors()
                )
            )
        else:
            break
        s += sgc.user(f"Attempt {attempt + 1} failed ({errors[-1]}). Only the JSON, please.")
    else:
        return {"verdict": "unsure", "errors": errors}

    if verdict.confidence < 0.5 and verdict.verdict != "unsure":
        s += sgc.user("You are not confident. Say what you would need to know.")
        s += sgc.assistant(sgc.gen("needs", max_tokens=48))
    return verdict.model_dump() | {"errors": errors}


ARGUMENTS = [
    {"question": "7 * 8?", "answer": "54"},
    {"question": "Capital of Australia?", "answer": "Canberra", "max_retries": 0},
]
REPLIES = [
    '{"verdict": "incorrect", "confidence": 0.95, "reason": "7 * 8 is 56"}',
    '```json\n{"verdict": "correct", "confidence": 0.4}\n```',
    '{"verdict": "maybe", "confidence": 2}',
    "I think that it is right.",
    '{"verdict": "unsure", "confidence": 0}',
    "[]",
]
