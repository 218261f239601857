"""The names that options take. Imports nothing, so that command lines can use them."""

POLICIES = ("lpm", "dfs", "fcfs", "random")  # see waiting.py
DEFAULT_POLICY = "lpm"
CACHES = ("radix", "list", "none")  # see cache.py
DEFAULT_CACHE = "radix"
DTYPES = ("auto", "float32", "bfloat16")
