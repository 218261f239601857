"""Branch, solve, merge: an essay is judged by dimension in parallel, then graded."""

import sgc

DIMENSIONS = ["Clarity", "Originality", "Evidence"]


@sgc.function
def essay_judge(s, essay):
    s += "Please evaluate the following essay.\n" + essay + "\n"

    # Judge from several dimensions in parallel; the essay is computed once.
    forks = s.fork(len(DIMENSIONS))
    for f, dimension in zip(forks, DIMENSIONS):
        f += "Evaluate it by this metric: " + dimension + ". End your judgment with END.\n"
        f += "Judgment:" + sgc.gen("judgment", max_tokens=32, stop="END")
    forks.join()

    # Merge the judgments, summarize and grade.
    for dimension, judgment in zip(DIMENSIONS, s["judgment"]):
        s += dimension + ":" + judgment + "\n"
    s += "In summary," + sgc.gen("summary", max_tokens=32, stop="\n") + "\n"
    s += "The letter grade of the essay is "
    s += sgc.select("grade", choices=["A", "B", "C", "D"])
    return s["grade"]
