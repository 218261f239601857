"""The marks of gpt-oss's form of replies (harmony); `harmony.py` follows them."""

CHANNEL, MESSAGE, END, NEXT = "<|channel|>", "<|message|>", "<|end|>", "<|start|>assistant"
CONSTRAIN = "<|constrain|>"
NEEDED = ("<|start|>", CHANNEL, MESSAGE, END)  # special tokens
ANALYSIS, FINAL, COMMENTARY = "analysis", "final", "commentary"
