"""Planning a batch before it runs: what its rows' prompts will begin with, and the best order.

Runs nothing and asks no model; `sgc/program.py` and `sgc/functions.py` call it.
"""
