"""`sgc dev`: a live page of a program: each edit runs it again, with only the changed requests."""
