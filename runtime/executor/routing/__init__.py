"""Which of several engines a request goes to.

Nothing here opens a connection: `backends/routed.py` does.
"""
