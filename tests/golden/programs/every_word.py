"""Every word of the language that no example has, once, for its golden file."""

import sgc

PIXEL = b"\x89PNG\r\n\x1a\n one pixel"


@sgc.function
def every_word(s, photo, question, limit: int):
    s += sgc.user(sgc.image(photo) + sgc.image(PIXEL) + question)
    with s.assistant():
        s += sgc.separate_reasoning(sgc.gen("answer", limit), "qwen3")
    with s.var_scope("facts"):
        s += "age: " + sgc.gen_int("age") + " name: " + sgc.gen_string("name")
        s += sgc.gen("json", json_schema={"type": "object"}, keep_stop=True, stop=["\n"])
    s += sgc.gen("many", n=3, temperature=0.8, seed=7, stop_regex="[.!]")
    s += sgc.gen("told", return_logprob=True, top_logprobs_num=2, logit_bias={5: -1.5}, heal=True)
    s += sgc.select("pick", ["yes", "no"], choices_method=sgc.joint)
    forks = s.fork(2)
    forks += lambda i: f"part {i}: " + sgc.gen("part", ebnf='root ::= "a"')
    forks.join("concate_and_append", kv="approximate")
    print("facts:", s["facts"])
    longest = sorted(s["facts"].split(), key=len)
    s[f"up_to_{limit}"] = question
    return longest[-1:]
