"""The quickstart of LlamaIndex: chat, streams, tools, a schema, embeddings, an index, an agent."""

import asyncio
import sys

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

ADDRESS = {"api_base": sys.argv[1] + "/v1", "api_key": "none"}
ABILITIES = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 4096}
OPTIONS = {**ADDRESS, **ABILITIES, "temperature": 0.0, "max_retries": 0}


def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


class Joke(BaseModel):
    """A joke to tell."""

    setup: str = Field(description="the question", max_length=20)
    rating: int = Field(ge=1, le=10)


llm = OpenAILike(model=sys.argv[2], max_tokens=120, **OPTIONS)
asked = [ChatMessage(role="system", content="Be short."), ChatMessage(role="user", content="Hi")]
said = llm.chat(asked).message.content
assert said
pieces = list(llm.stream_chat(asked))
assert len(pieces) > 1
assert "".join(piece.delta or "" for piece in pieces) == said
assert llm.complete("What do you call a young cat?").text

tool = FunctionTool.from_defaults(multiply)
answer = llm.chat_with_tools([tool], "What is 3 times 12?", tool_required=True)
(call, *_) = llm.get_tool_calls_from_response(answer)
assert call.tool_name == "multiply"
assert isinstance(call.tool_kwargs["a"], int)

template = PromptTemplate("Tell me a joke about {topic}")
strict = OpenAILike(
    model=sys.argv[2], max_tokens=300, should_use_structured_outputs=True, **OPTIONS
)
for each in (strict, OpenAILike(model=sys.argv[2], max_tokens=300, **OPTIONS)):
    assert isinstance(each.structured_predict(Joke, template, topic="cats"), Joke)

embedding = OpenAILikeEmbedding(model_name=sys.argv[2], **ADDRESS)
facts = [Document(text=text) for text in ("Cows drink water.", "Bees make honey.")]
index = VectorStoreIndex.from_documents(facts, embed_model=embedding)
found = index.as_query_engine(llm=llm, similarity_top_k=1).query("What do bees make?")
assert len(found.source_nodes) == 1
assert isinstance(found.response, str)


async def agent() -> None:
    answered = await FunctionAgent(tools=[multiply], llm=llm).run("What is 3 times 12?")
    assert answered.response.role == "assistant"


asyncio.run(agent())
# A compiled program that the server runs, as a model.
program = OpenAILike(model="program/tip", max_tokens=24, **OPTIONS)
assert program.complete("tea").text
assert [*program.stream_chat([ChatMessage(role="user", content="tea")])][-1].message.content
print("ok")
