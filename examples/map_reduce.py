"""Map and reduce: every chunk of a text is summarised, four at a time, then all summaries are."""

import sgc


@sgc.function
def summarise(s, chunk: str, words: int):
    s += f"Text: {chunk}\nThe text in at most {words} words:"
    s += sgc.gen("summary", max_tokens=2 * words, stop="\n")
    return s["summary"].strip()


@sgc.function
def map_reduce(s, chunks: list[str]):
    notes = sgc.map(summarise, chunks, width=4, words=12)
    s += "Notes:\n- " + sgc.join("\n- ", notes.returns)
    s += "\nAll notes in one sentence:" + sgc.gen("summary", max_tokens=32, stop="\n")
    return s["summary"].strip()
