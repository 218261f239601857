"""The quickstart of LiteLLM: completions, streams, tools, embeddings, responses."""

import asyncio
import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

OPTIONS = {
    "model": f"openai/{sys.argv[2]}",
    "api_base": sys.argv[1] + "/v1",
    "api_key": "none",
    "temperature": 0,
    "max_tokens": 200,
}
ASKED = [{"role": "user", "content": "Hello, how are you?"}]
PARAMETERS = {"type": "object", "properties": {"unit": {"enum": ["c", "f"]}}, "required": ["unit"]}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]

said = litellm.completion(messages=ASKED, **OPTIONS)
assert said.choices[0].message.content
assert said.usage.completion_tokens > 0
pieces = litellm.completion(messages=ASKED, stream=True, **OPTIONS)
text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
assert text == said.choices[0].message.content
asked = {"messages": ASKED, "tools": TOOLS, "tool_choice": "required"}
called = litellm.completion(parallel_tool_calls=False, **asked, **OPTIONS)
(call,) = called.choices[0].message.tool_calls
assert json.loads(call.function.arguments)["unit"] in ("c", "f")
message = called.choices[0].message.model_dump()
result = {"role": "tool", "tool_call_id": call.id, "content": "21"}
again = litellm.completion(messages=[*ASKED, message, result], tools=TOOLS, **OPTIONS)
assert again.choices[0].finish_reason
assert asyncio.run(litellm.acompletion(messages=ASKED, **OPTIONS)).choices
embedded = litellm.embedding(
    model=OPTIONS["model"], input=["a"], api_base=OPTIONS["api_base"], api_key="none"
)
assert embedded.data[0]["embedding"]
answered = litellm.responses(
    model=OPTIONS["model"], input="Hello", api_base=OPTIONS["api_base"], api_key="none",
    max_output_tokens=20,
)  # fmt: skip
assert answered.output
print("ok")
