"""`python -m darkmetrics` and the `darkmetrics` command: what can be said before anything else is imported."""

import sys


def main() -> int:
    """Run the command line; the exit code."""
    try:
        try:
            from darkmetrics.cli import run
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
                raise
            sys.stderr.write("darkmetrics: the command line needs typer and rich: pip install 'darkmetrics[cli]'\n")
            return 2
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("darkmetrics: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
