"""A router: a choice decides which prompt a question goes to."""

import sgc


@sgc.function
def look_up(s, question):
    s += "Answer the question in a few words.\nQuestion: " + question + "\nAnswer:"
    s += sgc.gen("answer", max_tokens=16, stop="\n")
    return s["answer"]


@sgc.function
def work_out(s, question):
    s += "Question: " + question + "\nLet us think step by step."
    s += sgc.gen("steps", max_tokens=48, stop="\n") + "\nSo the answer is"
    s += sgc.gen("answer", max_tokens=8, stop=[".", "\n"])
    return s["answer"]


@sgc.function
def router(s, question):
    s += "Which tool answers the question? Tools: search, calculator, weather.\n"
    s += "Question: " + question + "\nTool: "
    s += sgc.select("tool", choices=["search", "calculator", "weather"])
    if s["tool"] == "search":
        answer = look_up(question).ret_value
    elif s["tool"] == "calculator":
        answer = work_out(question).ret_value
    else:
        answer = "I cannot see the sky from here."
    s += "\nAnswer: " + answer.strip()
    return s["tool"]
