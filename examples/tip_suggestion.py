"""Skeleton of thought: two short tips, expanded in parallel by a nested program."""

import sgc


@sgc.function
def expand(s, tip):
    s += "Please expand the following tip into a detailed paragraph: " + tip + "\n"
    s += sgc.gen("paragraph", max_tokens=48)


@sgc.function
def tip_suggestion(s, topic):
    s += "Here are 2 concise tips for " + topic + ".\n"

    # Generate a skeleton of two short tips.
    s += "1." + sgc.gen("tip_1", max_tokens=24, stop=["\n", ":", "."]) + "\n"
    s += "2." + sgc.gen("tip_2", max_tokens=24, stop=["\n", ":", "."]) + "\n"

    # Expand the tips into paragraphs, in parallel.
    detailed_1 = expand(tip=s["tip_1"])
    detailed_2 = expand(tip=s["tip_2"])

    # Merge the results and summarize.
    s += "Tip 1: " + detailed_1["paragraph"] + "\n"
    s += "Tip 2: " + detailed_2["paragraph"] + "\n"
    s += "In summary," + sgc.gen("summary", max_tokens=32)
