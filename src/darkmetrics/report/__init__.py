"""Reports: everything an evaluation says, as a plain dictionary first, then as a page, as Markdown or as JSON.

Import rule: a report computes nothing that a result below does not offer; only files under templates/ hold HTML.
"""

from darkmetrics.report.render import render, write_report
from darkmetrics.report.summarize import summarize

__all__ = ["render", "summarize", "write_report"]
