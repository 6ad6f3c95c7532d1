"""The command line: `pace`, or `python -m pace_actors.cli`."""

from pace_actors.cli.main import main

__all__ = ["main"]
