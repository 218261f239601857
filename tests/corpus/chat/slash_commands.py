"""A chat loop with slash commands parsed by str.partition, settings in a dict, undo of turns."""

import sgc

DEFAULTS = {"tone": "neutral", "length": "short"}
HELP = "/set key value, /undo, /reset, /quit"


def handle(command: str, settings: dict[str, str], log: list[str]) -> str | None:
    name, _, rest = command[1:].partition(" ")
    if name == "set":
        key, _, value = rest.partition(" ")
        if key not in settings or not value:
            return f"Settings: {', '.join(sorted(settings))}"
        settings[key] = value
        return f"{key} = {value}"
    if name == "undo":
        return f"Removed: {log.pop()}" if log else "Nothing to undo"
    if name == "reset":
        settings |= DEFAULTS
        log.clear()
        return "Reset."
    if name == "quit":
        return None
    return HELP


@sgc.function
def program(s, lines: list[str]):
    settings = {**DEFAULTS}
    log: list[str] = []
    for line in lines:
        if line.startswith("/"):
            answer = handle(line, settings, log)
            if answer is None:
                break
            s += f"[{answer}]\n"
            continue
        s += f"({settings['tone']}, {settings['length']}) User: {line}\nBot:"
        s += sgc.gen("bot", max_tokens=24, stop="\n") + "\n"
        log.append(s["bot"].strip())
    return settings, log[::-1]


ARGUMENTS = [
    {"lines": ["hi", "/set tone rude", "hi again", "/undo", "/quit", "never"]},
    {"lines": ["/set x", "/undo", "/reset", "/what"]},
]
REPLIES = [" Hello.", " What?", ""]
