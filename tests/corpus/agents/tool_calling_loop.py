"""A tool-calling loop: the model writes JSON calls and reads results until it answers."""

import json

import sgc

TOOL_DOCS = [{"name": n, "parameters": {"city": "string"}} for n in ("get_weather", "get_time")]


@sgc.tool(effect="pure")
def get_weather(city: str) -> dict:
    table = {"oslo": (-3, "snow"), "cairo": (31, "sun")}
    degrees, sky = table[city.lower()]
    return {"city": city, "degrees": degrees, "sky": sky}


@sgc.tool(effect="pure")
def get_time(city: str) -> str:
    return {"oslo": "14:05", "cairo": "15:05"}.get(city.lower(), "unknown")


@sgc.function
def program(s, messages: list[dict[str, str]]):
    s += sgc.system("You can call tools. Tools: " + json.dumps(TOOL_DOCS))
    for message in messages:
        role = sgc.user if message["role"] == "user" else sgc.assistant
        s += role(message["content"])
    calls = []
    for _ in sgc.turns(4):
        s += sgc.assistant(sgc.gen("reply", max_tokens=96))
        reply = s["reply"].strip()
        if not reply.startswith("{"):
            break  # an ordinary answer
        try:
            call = json.loads(reply)
            name, arguments = call["name"], call.get("arguments", {})
        except (json.JSONDecodeError, KeyError) as e:
            s += sgc.user(f"Could not parse your tool call: {type(e).__name__}")
            continue
        city = str(arguments.get("city", ""))
        if name == "get_weather":
            try:
                result = get_weather(city)
            except KeyError:
                result = {"error": f"no weather for {city!r}"}
        elif name == "get_time":
            result = get_time(city)
        else:
            result = {"error": f"there is no tool {name}"}
        calls.append(name)
        s += sgc.user(json.dumps({"name": name, "content": result}))
    else:
        s += sgc.assistant("I could not finish in time.")
    return calls


ARGUMENTS = [
    {"messages": [{"role": "user", "content": "Is it warmer in Oslo or in Cairo?"}]},
    {"messages": [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hi"}]},
    {"messages": []},
]
REPLIES = [
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    '{"name": "get_weather", "arguments": {"city": "Atlantis"}}',
    '{"name": "get_time", "arguments": {"city": "Cairo"}}',
    '{"name": "sing"}',
    '{"arguments": {}}',
    "{oops",
    "Cairo is warmer.",
]
