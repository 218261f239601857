"""Facts out of a text: JSON that keeps to a schema, then a choice with its probabilities."""

import sgc

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "job": {"enum": ["baker", "doctor", "engineer", "teacher", "other"]},
        "born": {"type": "integer", "minimum": 1900, "maximum": 2030},
    },
    "required": ["name", "job", "born"],
}


@sgc.function(heal=True)  # texts before a gen end with a space, which tokens like to begin with
def extract(s, text):
    s += "Text: " + text + "\n"
    # Names, quotes and commas are forced by the schema: the model is asked for the values only.
    s += "The person as JSON: " + sgc.gen("person", json_schema=PERSON, max_tokens=64) + "\n"
    s += "Born on " + sgc.gen("date", regex=r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]") + ".\n"
    s += "Is the person a teacher? " + sgc.select("is_teacher", ["yes", "no"])
    return s["person"]
