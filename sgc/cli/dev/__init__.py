"""`sgc dev`: a program's page, live: each edit runs it again, and asks only what has changed."""
