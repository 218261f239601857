"""JSON without a constraint: asked again, with what was wrong, until it can be read."""

import json

import sgc


@sgc.function
def json_retry(s, text):
    s += sgc.user("Extract the name and job from the text as JSON.\nText: " + text)
    for attempt in sgc.turns(3):
        s += sgc.assistant(sgc.gen("person", max_tokens=48))
        try:
            person = json.loads(s["person"])
        except ValueError as error:
            s += sgc.user(f"That is no JSON: {error}. Give the JSON object alone.")
        else:
            return person
    return None
