"""The names that options take. Imports nothing, so that command lines can use them."""

POLICIES = ("lpm", "dfs", "fcfs", "random")  # see waiting.py
DEFAULT_POLICY = "lpm"
DTYPES = ("auto", "float32", "bfloat16")
