"""The command line: parse, call, print.

Import rule: nothing here computes; what is slow to import is imported by the command that needs it, through the lazy
names of the package.
"""

from darkmetrics.cli.app import app, run

__all__ = ["app", "run"]
