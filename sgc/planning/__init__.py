"""Planning a batch before it runs: what its rows' prompts will begin with, and the best order.

Runs nothing and asks no model; `sgc/programs/program.py` and `sgc/programs/function.py` call it.
"""
