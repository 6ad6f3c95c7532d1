"""Conversations from files into a directory: `strict` reads JSON, `lines` the format, `feed` drives a `Pace` with it.

The format is documented in docs/import-format.md.
"""

from pace_actors.importing.feed import Importer, Tally
from pace_actors.importing.lines import FactLine, Line, ResetLine, SettingsLine, Source, TurnLine, read_lines

__all__ = ["FactLine", "Importer", "Line", "ResetLine", "SettingsLine", "Source", "Tally", "TurnLine", "read_lines"]
