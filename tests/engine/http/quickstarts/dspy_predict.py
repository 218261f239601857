"""The quickstart of DSPy: a language model, a prediction, a chain of thought, typed outputs, and a
compiled program."""

import sys
from typing import Literal

import dspy


class LM(dspy.LM):
    """DSPy knows of models in its own list alone that they can be held to a schema."""

    supports_response_schema = True

    @property
    def supported_params(self) -> set[str]:
        return {*super().supported_params, "response_format"}


lm = LM(
    f"openai/{sys.argv[2]}",
    api_base=sys.argv[1] + "/v1",
    api_key="none",
    temperature=0.0,
    max_tokens=600,
    cache=False,
)
dspy.configure(lm=lm)
assert lm("Say this is a test!")
assert lm(messages=[{"role": "user", "content": "Say this is a test!"}])


class Classify(dspy.Signature):
    """Classify the sentiment of a sentence."""

    sentence: str = dspy.InputField()
    sentiment: Literal["positive", "negative", "neutral"] = dspy.OutputField()
    confidence: Literal[1, 2, 3] = dspy.OutputField()


# A model that does not follow the default form of prompts is asked again, under a schema.
found = dspy.Predict(Classify)(sentence="This book was super fun to read.")
assert found.sentiment in ("positive", "negative", "neutral")
assert found.confidence in (1, 2, 3)
# A compiled program that the server runs, as a model.
tip = dspy.LM("openai/program/tip", api_base=sys.argv[1] + "/v1", api_key="none", cache=False)
assert tip("tea")
print("ok")
