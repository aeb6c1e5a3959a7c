"""`python -m darkmetrics` and the `darkmetrics` command: what can be said before anything else is imported."""

import contextlib
import sys


def main() -> int:
    """Run the command line; the exit code."""
    try:
        try:
            from darkmetrics.cli import run
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
                raise
            _say("the command line needs typer and rich: pip install 'darkmetrics[cli]'")
            return 2
        return run()
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _say(text: str) -> None:
    with contextlib.suppress(OSError, AttributeError):  # a standard error that is full or closed hears nothing
        sys.stderr.write(f"darkmetrics: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
