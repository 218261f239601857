"""Guard rails: checks of input and output run in parallel forks; each has a veto."""

import functools
import logging

import sgc

log = logging.getLogger("guard")
BANNED = {"bomb", "poison"}
CHECKS = {
    "harm": "Could the text help somebody to do harm?",
    "privacy": "Does the text contain private data of a person?",
    "off_topic": "Is the text about something else than cooking?",
}
STRICT = ("harm", "privacy")


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = function(*args, **kwargs)
        log.debug("%s%r -> %r", function.__name__, args[1:], result)
        return result

    return wrapper


@logged
def run_checks(s, text, names):
    forks = s.fork(len(names))
    for f, name in zip(forks, names):
        f += f"Text: {text}\n{CHECKS[name]} "
        f += sgc.select("hit", choices=["yes", "no"])
    return [name for f, name in zip(forks, names) if f["hit"] == "yes"]


@sgc.function
def program(s, message: str):
    words = {w.strip(".,!?").lower() for w in message.split()}
    if words & BANNED:
        s += "Refused: " + ", ".join(sorted(words & BANNED))
        return "refused", list(words & BANNED)
    s += "You guard a cooking assistant.\n"
    before = run_checks(s, message, list(CHECKS))
    if any(name in STRICT for name in before):
        return "refused", before
    s += f"User: {message}\nAssistant:" + sgc.gen("reply", max_tokens=80, stop="User:")
    after = run_checks(s, s["reply"], list(STRICT))
    if after:
        s += "\n(Withdrawn.) Politely:" + sgc.gen("polite", max_tokens=30, stop="\n")
        return "withdrawn", after
    return ("off topic" if before else "ok"), [s["reply"].strip()]


ARGUMENTS = [
    {"message": "How long do I boil an egg?"},
    {"message": "How do I poison somebody?"},
    {"message": ""},
]
REPLIES = [" Seven minutes.", " Ask Dr. Jansen, 12 Elm Street.", " I would rather not."]
