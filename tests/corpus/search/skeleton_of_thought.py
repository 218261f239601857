"""Skeleton of Thought: an outline first, its points expanded in parallel, then put together."""

import re

import sgc

SKELETON_PROMPT = (
    "You're an organizer responsible for only giving the skeleton of an answer. "
    "Provide 3 to 8 points, numbered, each only 3 to 5 words.\nQuestion: {question}\nSkeleton:\n1."
)
POINT = re.compile(r"(\d+)\.\s*(.+)")


def parse_skeleton(text):
    """[(1, 'Eat well'), (2, 'Sleep'), ...]; points without text are left out."""
    points = []
    for line in text.splitlines():
        m = POINT.match(line.strip())
        if m is None:
            continue
        index, title = m.groups()
        points.append((int(index), title.strip().rstrip(".")))
    return points


@sgc.function
def expand(s, question: str, skeleton: str, index: int, title: str):
    s += f"Question: {question}\nSkeleton:\n{skeleton}\n"
    s += f"Write point {index} only, in one or two sentences.\n{index}. {title}:"
    s += sgc.gen("body", max_tokens=64, stop=["\n", f"{index + 1}."])


@sgc.function
def program(s, question: str):
    s += SKELETON_PROMPT.format(question=question)
    s += sgc.gen("skeleton", max_tokens=96, stop="\n\n")
    skeleton = "1." + s["skeleton"]
    points = parse_skeleton(skeleton)

    if len(points) < 2:
        # Not worth a skeleton: answer directly.
        s += "\n\nAnswer:" + sgc.gen("direct", max_tokens=128)
        return {"mode": "direct", "answer": s["direct"].strip()}

    expansions = [expand(question, skeleton, i, t) for i, t in points[:8]]
    paragraphs = []
    for (i, title), e in zip(points, expansions):
        body = e["body"].strip()
        paragraphs.append(f"{i}. {title}" + (f": {body}" if body else ""))
    answer = "\n".join(paragraphs)
    return {"mode": "skeleton", "points": len(points), "answer": answer}


ARGUMENTS = [{"question": "How can I sleep better?"}, {"question": "Is 7 prime?"}]
REPLIES = [
    " Keep regular hours\n2. Avoid late coffee\n3. Darken the room.",
    " Yes, it is",
    " Relax\n- no number\n2.\n4. Read a book",
    " Go to bed at ten, also on Sundays. 2. No",
    "",
]
