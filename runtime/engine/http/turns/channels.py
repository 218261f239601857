"""The marks of gpt-oss's form of replies (harmony); `harmony.py` follows them."""

START, CHANNEL, MESSAGE, END = "<|start|>", "<|channel|>", "<|message|>", "<|end|>"
CONSTRAIN = "<|constrain|>"
NEXT = f"{START}assistant"
NEEDED = (START, CHANNEL, MESSAGE, END)  # special tokens
ENDS = (END, START, CHANNEL)  # of a message; a model may leave out what stands before the next one
BREAK = "\n\n"  # between messages that are told as one text
ANALYSIS, FINAL, COMMENTARY = "analysis", "final", "commentary"
