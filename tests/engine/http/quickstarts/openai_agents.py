"""The quickstart of the OpenAI Agents SDK: agents with tools, a handoff and an output type, over
chat completions and over responses."""

import asyncio
import sys

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel, Field

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
SETTINGS = ModelSettings(tool_choice="required", temperature=0, max_tokens=300)
called = []


@function_tool
def history_fun_fact(year: int) -> str:
    """Return a short history fact."""
    called.append(year)
    return "Sharks are older than trees."


class Sum(BaseModel):
    total: int = Field(ge=0, le=99)


async def main(model: object) -> None:
    tutor = Agent(
        name="History tutor",
        instructions="Answer history questions.",
        model=model,
        tools=[history_fun_fact],
        model_settings=SETTINGS,
    )
    called.clear()
    result = await Runner.run(tutor, "Tell me something surprising.", max_turns=4)
    assert called, result.new_items
    assert isinstance(result.final_output, str)

    triage = Agent(name="Triage", model=model, handoffs=[tutor], model_settings=SETTINGS)
    called.clear()
    result = await Runner.run(triage, "When did Rome fall?", max_turns=6)
    assert result.last_agent is tutor
    assert called

    called.clear()
    streamed = Runner.run_streamed(tutor, "And about trees?", max_turns=4)
    names = [event.type async for event in streamed.stream_events()]
    assert "raw_response_event" in names
    assert called

    calculator = Agent(
        name="Sums",
        model=model,
        output_type=Sum,
        model_settings=ModelSettings(temperature=0, max_tokens=300),
    )
    result = await Runner.run(calculator, "What is 12 plus 7?")
    assert isinstance(result.final_output, Sum)


for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
    asyncio.run(main(kind(model=sys.argv[2], openai_client=client)))
    client = AsyncOpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
print("ok")
