"""A phone menu as a state machine: the model labels what was said, a table gives the next state."""

import sgc

TRANSITIONS = {
    "start:greet": "start",
    "start:order": "order",
    "start:problem": "problem",
    "order:yes": "confirm",
    "order:no": "start",
    "problem:yes": "human",
    "problem:no": "start",
    "confirm:yes": "end",
    "confirm:no": "order",
}
LINES = {
    "start": "How can I help?",
    "order": "You want to order {item}. Is that right?",
    "problem": "Is it urgent?",
    "confirm": "That makes {price:.2f} euros. Shall I send {item}?",
    "human": "I put you through.",
    "end": "Thank you, goodbye!",
}
PRICES = {"pizza": 9.5, "salad": 6.0, "soup": 4.75}
FINAL = {"human", "end"}


@sgc.function(max_turns=10)
def program(s, utterances: list[str]):
    state = "start"
    item, price = "nothing", 0.0
    path = [state]
    i = 0
    s += "Bot: " + LINES[state] + "\n"
    while state not in FINAL and i < len(utterances):
        said = utterances[i]
        i += 1
        s += f"Caller: {said}\nIntent: "
        s += sgc.select("intent", choices=["greet", "order", "problem", "yes", "no"]) + "\n"
        following = TRANSITIONS.get(f"{state}:{s['intent']}")
        if following is None:
            s += "Bot: Pardon?\n"
            continue
        if following == "order":
            s += "Item:" + sgc.gen("item", max_tokens=4, stop="\n") + "\n"
            item = s["item"].strip().lower()
            if item not in PRICES:
                s += f"Bot: We have no {item}.\n"
                following = "start"
            else:
                price = PRICES[item]
        state = following
        path.append(state)
        s += "Bot: " + LINES[state].format(item=item, price=price) + "\n"
    return " > ".join(path), state in FINAL


ARGUMENTS = [
    {"utterances": ["Hello", "I'd like a pizza", "Yes", "Yes please", "What?"]},
    {"utterances": ["My soup was cold!", "Very urgent!!"]},
    {"utterances": []},
]
REPLIES = [" Pizza", " salad", " cake", "soup "]
