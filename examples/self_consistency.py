"""Self-consistency with an early stop: asks until the same answer has come twice in a row."""

import sgc


@sgc.function
def reasoned(s, question):
    s += "Question: " + question + "\nLet us think step by step."
    s += sgc.gen("steps", max_tokens=48, stop="\n", temperature=0.7) + "\nSo the answer is"
    s += sgc.gen("answer", max_tokens=8, stop=[".", "\n"])
    return s["answer"].strip()


@sgc.function
def self_consistency(s, question):
    before = reasoned(question).ret_value
    for turn in sgc.turns(6):
        answer = reasoned(question).ret_value
        if answer == before:
            break
        before = answer
    s += "Question: " + question + "\nAnswer: " + answer
    return answer
