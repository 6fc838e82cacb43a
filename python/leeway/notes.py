"""What the package tells the person who runs a script."""

import sys


def note(text: str) -> None:
    """Prints one line on standard error, at once."""
    print(f"leeway: {text}", file=sys.stderr, flush=True)
