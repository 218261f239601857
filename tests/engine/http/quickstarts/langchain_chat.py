"""The quickstart of LangChain's ChatOpenAI: invoke, stream, tools, structured output, an agent, and
a compiled program."""

import sys

import httpx
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

OPTIONS = {"model": sys.argv[2], "base_url": sys.argv[1] + "/v1", "api_key": "none"}


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


class Joke(BaseModel):
    """A joke to tell."""

    setup: str = Field(description="the question", max_length=20)
    rating: int = Field(ge=1, le=10)


def check(llm: ChatOpenAI) -> None:
    said = llm.invoke([("system", "You translate to French."), ("human", "I love programming.")])
    assert said.content
    assert said.usage_metadata["output_tokens"] > 0
    pieces = list(llm.stream("What do you call a young cat?"))
    assert len(pieces) > 1

    with_tools = llm.bind_tools([multiply], tool_choice="any")
    asked = with_tools.invoke("What is 3 times 12?")
    assert isinstance(asked, AIMessage)
    (call, *_) = asked.tool_calls
    assert call["name"] == "multiply"
    assert isinstance(call["args"]["a"], int)
    result = ToolMessage(str(multiply.invoke(call["args"])), tool_call_id=call["id"])
    answers = [ToolMessage("0", tool_call_id=each["id"]) for each in asked.tool_calls[1:]]
    again = llm.bind_tools([multiply]).invoke(["What is 3 times 12?", asked, result, *answers])
    assert isinstance(again, AIMessage)
    gathered = None
    for piece in with_tools.stream("What is 3 times 12?"):
        gathered = piece if gathered is None else gathered + piece
    assert gathered.tool_calls[0]["name"] == "multiply"

    for method in ("json_schema", "function_calling"):
        joke = llm.with_structured_output(Joke, method=method).invoke("Tell me a joke about cats")
        assert isinstance(joke, Joke)


check(ChatOpenAI(**OPTIONS, temperature=0, max_tokens=300))
check(ChatOpenAI(**OPTIONS, temperature=0, max_tokens=300, use_responses_api=True))
# A compiled program that the server runs, as a model, and as a step of a chain.
tip = ChatOpenAI(**{**OPTIONS, "model": "program/tip"}, max_tokens=24)
chain = ChatPromptTemplate.from_template("{topic}") | tip | StrOutputParser()
assert chain.invoke({"topic": "tea"})
assert "".join(chain.stream({"topic": "tea"}))
# With its arguments by name; a program may have any.
run = sys.argv[1] + "/v1/programs/tip"
client = httpx.Client(timeout=60)
step = RunnableLambda(lambda row: client.post(run, json={"arguments": row}).json()["return"])
assert len(step.batch([{"topic": "tea"}, {"topic": "rain"}])) == 2
agent = create_agent(ChatOpenAI(**OPTIONS, temperature=0, max_tokens=60), tools=[multiply])
found = agent.invoke({"messages": [{"role": "user", "content": "What is 3 times 12?"}]})
assert isinstance(found["messages"][-1], AIMessage)
print("ok")
