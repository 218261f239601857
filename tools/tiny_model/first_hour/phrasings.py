"""The templates of phrasings, by what is asked; `spin.py` has their form."""

# ruff: noqa: E501 (a template is a line)
from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tiny_model.first_hour.spin import FIRST_HOUR, OLD_SHARE, phrase
from tiny_model.world import World

_TEXT = "(text|passage|review|sentence|message|comment|note|post)"
_POS = "(positive, negative or neutral|positive, neutral or negative|negative, neutral or positive)"

TEMPLATES: dict[str, tuple[str, ...]] = {
    "question": (
        "(Answer|Please answer|Answer me|Reply to|Respond to) (the|this|each|my) question"
        "( with a short answer| briefly| shortly| in one word| in a few words| with a few words|)(.|:)",
        "(Give|Write|I want|I need) (a|one) (short|brief|quick) answer( to the question| to this|).",
        "(Short answer|Brief answer|One or two words as the answer)(, please|)(.|:)",
        "(What is|Tell me) the answer to (this|the following) question(?|.)",
        "(Keep|Please keep) (the|your) answer (short|brief).",
    ),
    "sentiment": (
        f"(Classify|Label|Rate|Mark|Sort|Judge) (the|this|the following) {_TEXT} as {_POS}(.|:)",
        f"(Is|Decide whether|Tell me whether|Say whether|Would you say that) "
        f"(the|this|the following) {_TEXT} is {_POS}.",
        f"Is (the|this) {_TEXT} {_POS}?",
        f"(What|Tell me what|Find out what|Determine what) (is the|the) (sentiment|mood|tone|feeling)"
        f" (of|in) (the|this|the following) {_TEXT}( is|)(.|:)",
        f"(Determine|Find|Give|Name|Identify|Detect) the (sentiment|mood|tone|feeling) of "
        f"(the|this|the following) {_TEXT}(| (as|:) {_POS})(.|:)",
        "How does (the writer|the author|the customer|the person) (feel|sound)? "
        f"(Answer|Choose|Say|Reply) {_POS}.",
        f"Sentiment (analysis|of the {_TEXT}|of this {_TEXT})(:|, {_POS}:)",
    ),
    "area": (
        f"(Which|What) (topic|subject|theme) does the {_TEXT} have?"
        " (Choose|Pick|Take|Select) (one of|from|one from|among)( these|): {}.",
        f"(Sort|Put|File|Place) (the|this|the following) {_TEXT} (into|under) one of"
        " (these|the) (topics|categories|classes|groups|subjects): {}.",
        f"(Choose|Pick|Select|Find|Name|Tell me|Give) the (topic|category|subject|theme) of"
        f" (the|this|the following) {_TEXT}(:| from| from this list:| among) {{}}.",
        f"(Categories|Topics|Classes|Labels|Subjects): {{}}. (Classify|Label|Sort) the {_TEXT}.",
        f"Is (the|this) {_TEXT} about {{}}?",
        "(Assign|Give) (one|a single) (topic|category|label|tag)( out of|:| from) {}.",
    ),
    "related": (
        "Do (these|both|the two) (sentences|texts|messages|statements)"
        " (have|share) (one|the same) (topic|subject|theme)?"
        " (Answer|Reply|Say|Answer with) yes or no.",
        "Are (these|both|the two) (sentences|texts|messages|statements) related"
        "( to each other|)? (Answer|Reply|Say|Answer with) yes or no.",
        "(Compare the two|Read both|Look at the two) (sentences|texts)."
        " (Same topic|Same subject|Are they related|Do they belong together)? (Yes or no.|Yes or no?)",
    ),
    "is_about": (
        f"Is (the|this|the following) {_TEXT} (about|on) {{}}?"
        " (Answer|Reply|Say|Answer with|Just say) yes or no.",
        f"Does (the|this) {_TEXT} (deal with|speak of|talk about|concern) {{}}?"
        " (Answer|Reply|Say|Answer with|Just say) yes or no.",
        f"(Yes or no|Tell me yes or no|Decide yes or no): is (the|this) {_TEXT} about {{}}?",
        f"Is {{}} the (topic|subject|theme) of (the|this) {_TEXT}? (Yes or no.|Answer yes or no.)",
    ),
    "kind_of": (
        "(Reply|Say|Just say|Respond with|Reply with|Only) yes or no(.|:)",
        "(Is it so|Is that right|True|Correct)? (Answer|Reply|Say) yes or no.",
    ),
    "extract": (
        "(Extract|Find|List|Get|Pull|Collect|Note|Fill in|Give me|Tell me|Show|Copy|Take) (the|)"
        " {} (from|in|out of|given in|of) (the|this|the following) (text|passage|note|message)(.|:)",
        "(What are|Which are) the {} (in|of|given in) (the|this) (text|passage|note)?",
        "(I need|I want|We need) (the|) {} (of|from) (the person|this person|the text|this text).",
        "(Read|Look at) the (text|passage|note)(,| and) (then|) (list|write|give|note) (the|) {}.",
    ),
    "json": (
        "(Extract|Find|Return|Give|Write|Output|Get|Give me|Collect|Put) (the|) {} "
        "(from|of|in|out of) (the|this|the following) (text|passage|note|message|person)"
        " (as JSON|in JSON|as a JSON object|into JSON|in JSON form|as one JSON object)(.|:)",
        "(Turn|Convert|Change|Make) (the|this) (text|passage|note) into (JSON|a JSON object)"
        " with (the keys|keys|the fields|) {}.",
        "(JSON|A JSON object|One JSON object) with {}(, please|)(.|:)",
        "(Reply|Answer|Respond) (in|with|only in|only with) JSON(:| with the keys| that has) {}.",
        "(Write|Give|Make|Create) (the|a|one) JSON( object|) (for|of|about) (the|this) person (with|:) {}.",
    ),
    "read": (
        "(Read|Look at|Take) (the|this|the following) (text|passage|note|context), (then|and) (answer|reply)"
        "( to|) (the|my|this) question(.|:)",
        "(Answer|Please answer) (the|my|this) question (from|with|by|using|based on|with the help of)"
        " (the|this) (text|passage|note|context)( only|)(.|:)",
        "(Here is|This is) (a|the) (text|passage|note)( and a question|, then a question)."
        " (Answer it|Answer the question)(| briefly| in a few words).",
        "What does the (text|passage|note) say? Answer the question( in a few words| briefly|).",
    ),
    "tool": (
        "(Which|What) (tool|helper|program|service) (fits|do you need for|would you use for|is right for|"
        "should be used for|helps with|can do|handles|would help with) (the|this) (question|request|task|message)?"
        " (Tools|Options|Choices|Choose from|Pick one of|You have)(:|) {}.",
        "(Choose|Select|Pick|Name|Find|Decide on|Take|Tell me) (the|one|a|the best|the right|the one) tool"
        " (for|that fits|that answers|that can do|to use for) (the|this) (question|request|task|message)(:| from|"
        " out of| among) {}.",
        "(Tools|Your tools|Available tools|The tools): {}. (Which one|Which tool|What) (fits|is needed|helps|"
        "do you use|do you take|is right)(| here| for this)?",
        "(Route|Send|Pass|Give) (the|this) (question|request|message) to (one of|one of these:|one of the tools) {}.",
        "You (have|may use|can call|can choose from) {}. (Choose one|Pick one|Name the right one|Which is right?)",
    ),
    "summary": (
        "(Summarize|Summarise|Sum up|Shorten|Condense) (the|this|the following|my) (text|passage|article|note|message)"
        "(| briefly| shortly| in one sentence| in a sentence| in a single sentence| in a few words| in short)(.|:)",
        "(Give|Write|Make|I want|I need|Give me|Write me) a (short|brief|one sentence|very short|quick) summary"
        "(| of the text| of this| of this text| of the passage| of the article)(.|:)",
        "(Say|Tell me|Put|Write) (in one sentence|in a few words|briefly|in short) what the"
        " (text|passage|article|note) (says|tells|is about).",
        "(What is|Give me|Write) the (main point|main idea|gist|core) of (the|this) (text|passage|article|note)(?|.)",
        "(One sentence|A single sentence|A short sentence)( please|), (about|on|that sums up) the (text|passage|article).",
    ),
    "tips": (
        "(Give|List|Write|Name|Show|Offer|Share|Tell) (me|us|) {n} (short|good|useful|simple|concise|practical|helpful|)"
        " tips (for|on|about) {t}(.|:)\n",
        "(What are|Here are|These are) {n} (short|good|useful|simple|practical|helpful|best|)"
        " tips (for|on|about) {t}(.|:|?)\n",
        "{n} (short|good|useful|simple|practical|helpful|quick|) (tips|ideas|hints|pieces of advice) (for|on|about) {t}(.|:)\n",
        "(I need|I want|We need|Please give|Please write) {n} (short|good|simple|useful|) tips (for|on|about) {t}.\n",
    ),
    "expand": (
        "(Expand|Explain|Develop|Describe|Write more about|Tell me more about|Say more about) (the|this|the following) tip"
        "(| in a paragraph| in a few sentences| in more words| in detail| a little): ",
        "(Turn|Make|Grow) (the|this) tip into a (short|longer|full|) paragraph: ",
        "(Why does this tip help|Why is this a good tip|What does this tip mean)? (Tip: |)",
    ),
    "essay": (
        "(Evaluate|Judge|Read|Review|Rate|Assess|Look at|Please read|Consider|Here is|This is) (the|this|an|my)"
        " essay(.|:)\n",
        "(The|An|My) essay(:| to judge:| is this:)\n",
    ),
    "metric": (
        "(Evaluate|Judge|Rate|Assess|Review) (it|the essay|this essay) (by|on|with) (this metric:|the metric|this point:)"
        " {d}. (End|Finish|Close) (your judgment|the judgment|your answer) with (the word |)END.\nJudgment:",
        "(How good is its|What do you think of its|Say something about its) {l}? (End|Finish) with END.\nJudgment:",
    ),
    "grade": (
        "(The|My|Its|A fair) (letter grade|grade|mark)( of the essay| of this essay| for the essay|) is ",
        "(Letter grade|Grade|Mark|Final grade|Overall grade)( of the essay|)(: |, from A to D: )",
    ),
    "steps": (
        "(Let's|Let us|We) (think|reason|go|work) (step by step|slowly|in steps)(.|:)",
        "(Steps|Reasoning|Thought|Thinking|Thoughts|Solution|Working|Step by step):",
    ),
    "answer": (
        "(So|Therefore,|Thus|Hence|This means that|And so|In the end) (the|my|our) (answer|result|final answer) is",
        "(Answer|Result|Final answer|The result|Final result):",
    ),
    "agent": (
        "(Answer|Please answer|Solve|Work on) (the|this|my|the following) question."
        " (You can use|You may use|Use|You have) (these|the following|some|the) tools:\n{tools}\n",
        "(These are your|Your|The|You have these|You may call these|Here are the) tools(:|.)\n{tools}\n",
    ),
    "asked_about": (
        "Was my {nth} (question|message) (about|on|related to) {kind}? (Answer|Reply|Say|Answer with|Just say) yes or no.",
        "Did I ask about {kind} in my {nth} question? (Answer|Reply|Say|Just say) yes or no.",
        "Did my {nth} question (deal with|concern|mention) {kind}? (Answer|Reply|Say|Just say) yes or no.",
        "(Yes or no|Tell me yes or no): (was|is) my {nth} question about {kind}?",
    ),
    "what_is": (
        "(What is|What's|What exactly is|So what is|Please, what is) {}?",
        "(Tell me|Please tell me|Explain|I want to know|Say|Explain to me|I would like to know) what {} is.",
        "(Do you know|Could you tell me|Can you explain|Can you say|Would you tell me) what {} is?",
        "(Explain|Describe|Define|Tell me about) {}.",
    ),
}


def head(r: Random, world: World, kind: str, old: Sequence[str]) -> str:
    """A phrasing of an instruction: one of `old`, or from the last stage on perhaps another."""
    if world.stage < FIRST_HOUR or (world.split == "train" and r.random() < OLD_SHARE):
        return r.choice(old)
    return phrase(r, world, kind, TEMPLATES[kind])
