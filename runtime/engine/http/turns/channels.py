"""The marks of gpt-oss's form of replies (harmony); `harmony.py` follows them."""

START, CHANNEL, MESSAGE, END = "<|start|>", "<|channel|>", "<|message|>", "<|end|>"
CONSTRAIN = "<|constrain|>"
NEXT = f"{START}assistant"
NEEDED = (START, CHANNEL, MESSAGE, END)  # special tokens
ENDS = (END, START, CHANNEL)  # end a message: a model may leave out END, or END and START
BREAK = "\n\n"  # between messages that clients get as one text
ANALYSIS, FINAL, COMMENTARY = "analysis", "final", "commentary"
