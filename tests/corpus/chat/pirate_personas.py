"""A chat bot with personas: /commands in the user's message change how it speaks."""

import sgc

PERSONAS = {
    "default": "You are a helpful assistant.",
    "pirate": "You are a pirate. Say 'arr' in every sentence.",
    "poet": "You answer in rhyme.",
}
GREETING = """Welcome! Type /pirate, /poet or /default to change my voice.
Type /shout to make me loud and /quit to leave."""


@sgc.function
def say(s, persona: str, text: str):
    s += sgc.system(PERSONAS[persona])
    s += sgc.user(text)
    s += sgc.assistant(sgc.gen("reply", max_tokens=50, temperature=0.7))
    return s["reply"]


@sgc.function
def program(s, lines: list[str]):
    persona = "default"
    loud = False
    count = 0
    s += GREETING + "\n"
    for line in lines:
        s += "> " + line + "\n"
        if line.startswith("/"):
            command = line[1:].strip().lower()
            if command == "quit":
                s += "Bye!\n"
                break
            elif command == "shout":
                loud = not loud
                s += "Loud is now " + ("on" if loud else "off") + "\n"
            elif command in PERSONAS:
                persona = command
                s += f"I am now: {persona}\n"
            else:
                s += "I do not know /%s\n" % command
            continue
        if not (text := line.strip()):
            continue
        reply = say(persona, text).ret_value.strip()
        if persona == "pirate" and "arr" not in reply.lower():
            reply = "Arr! " + reply
        if loud:
            reply = reply.upper()
        count += 1
        s += reply + "\n"
    else:
        s += "(the connection was closed)\n"
    return count


ARGUMENTS = [
    {"lines": ["Hello!", "/pirate", "Where is the gold?", "/shout", "Tell me!", "/dance", "/quit"]},
    {"lines": ["", "/poet ", "Roses?"]},
    {"lines": []},
]
REPLIES = [
    "Hello there.",
    "Arr, it be on the island.",
    "Under the palm tree,\nlook and see.",
    "No.",
]
