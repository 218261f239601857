"""The `sgc` command, and `python -m sgc`."""

import sys


def main() -> None:
    """Runs the command line. An interrupt while it is still being imported is no traceback."""
    try:
        from sgc.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("sgc: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
