"""The quickstart of instructor: a model of pydantic's, by tools and by JSON."""

import sys

import instructor
from openai import OpenAI
from pydantic import BaseModel, Field

base = OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)


class User(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=120)


for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS_STRICT):
    client = instructor.from_openai(base, mode=mode)
    user = client.chat.completions.create(
        model=sys.argv[2],
        response_model=User,
        messages=[{"role": "user", "content": "Nora Weber is 34 years old."}],
        temperature=0,
        max_tokens=200,
        max_retries=1,
    )
    assert isinstance(user, User)
print("ok")
