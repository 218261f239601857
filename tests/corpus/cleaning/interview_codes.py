"""Open coding of interview answers: a codebook grows, then rare codes are merged."""

import sgc

NEW = "NEW"


@sgc.function
def program(s, answers: list[str], codebook: dict[str, str] = {}, min_count: int = 2):
    codes = dict(codebook)
    assigned = []
    s += "You code interview answers.\n"
    for i, answer in enumerate(answers):
        if not answer.strip():
            assigned.append(None)
            continue
        s += f"\nAnswer {i + 1}: {answer}\n"
        if codes:
            s += "Codes so far: " + "; ".join(f"{c} ({d})" for c, d in codes.items()) + "\n"
            s += "Code: " + sgc.select("code", choices=[*codes, NEW]) + "\n"
            code = s["code"]
        else:
            code = NEW
        if code == NEW:
            s += "New code in one word: " + sgc.gen("name", max_tokens=4, stop=["\n", " "]) + "\n"
            code = s["name"].strip(" .,").lower() or f"code{len(codes) + 1}"
            if code not in codes:
                s += "It means:" + sgc.gen("meaning", max_tokens=16, stop="\n") + "\n"
                codes[code] = s["meaning"].strip()
        assigned.append(code)

    # second pass: rare codes are merged into others
    counts = {}
    for code in assigned:
        if code is not None:
            counts[code] = counts.get(code, 0) + 1
    common = [c for c, n in counts.items() if n >= min_count]
    rare = [c for c in counts if c not in common]
    for code in rare:
        if not common:
            break
        s += f"The code {code} is rare. It belongs to "
        s += sgc.select("target", choices=[*common, "nothing else"]) + "\n"
        if s["target"] != "nothing else":
            assigned = [s["target"] if a == code else a for a in assigned]
    return {"codes": assigned, "codebook": sorted({a for a in assigned if a})}


ARGUMENTS = [
    {
        "answers": [
            "It was too expensive.",
            "I had no time",
            "",
            "The price!",
            "My children were ill.",
        ]
    },
    {"answers": ["Hm."], "codebook": {"unclear": "no content"}, "min_count": 1},
    {"answers": ["Too far away."]},
    {"answers": []},
]
REPLIES = ["price", "time", "Cost. ", "", "family\n", " what it costs"]
