"""`python -m sgc` is the `sgc` command."""

from sgc.cli import main

main()
