"""A chat of several turns; every turn continues what is already cached."""

import sgc


@sgc.function
def chat(s, first: str, second: str, name: str = "Ada"):
    s += sgc.system(f"You are a helpful assistant. The user is called {name}.")
    s += sgc.user(first)
    s += sgc.assistant(sgc.gen("answer_1", max_tokens=32))
    s += sgc.user(second)
    s += sgc.assistant("Sure." + sgc.gen("answer_2", max_tokens=32))
    with s.user():
        s += "Was my first question about food? Answer yes or no."
    with s.assistant():
        s += sgc.select("food", choices=["yes", "no"])
    return {"answers": [s["answer_1"], s["answer_2"]], "food": s["food"]}
