"""One HTML file about a log: everything in it, nothing fetched, no server."""

from pace_actors.replay.report.page import report
from pace_actors.replay.report.sections import facts_sections, sections, thread_sections

__all__ = ["facts_sections", "report", "sections", "thread_sections"]
