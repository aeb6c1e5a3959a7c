"""The end of `make guarantees`: the table of what was measured, the results file, and the pages that show it.

`python -m guarantees` (with the tests on the path) computes nothing. Results and pages are written only when every
piece has been measured by the code as it is.
"""

import sys
from collections.abc import Sequence

from guarantees.docs import PAGES, fill_page
from guarantees.lines import alarms, news
from guarantees.promises import PROMISES, Promise, pieces_of
from guarantees.results import RESULTS, ROOT, read, table, write


def main(promises: Sequence[Promise] = PROMISES) -> int:
    every = pieces_of(promises)
    there = [piece for piece in every if piece.is_there()]
    known = {piece.name for piece in there}
    complete = [one for one in promises if not one.lacking and all(piece.name in known for piece in one.pieces)]
    lines = [line for promise in complete for line in promise.lines()]
    minutes = sum(piece.cpu_seconds() for piece in there) / 60.0
    _say(*table(lines), "")
    _say(f"{len(there)} of {len(every)} pieces measured on this code, in {minutes:,.0f} minutes of CPU time.")
    if len(there) < len(every):
        _say("Run `make guarantees` again: it goes on from here. Nothing is written until it is finished.")
        return 1
    for promise in promises:
        if promise.lacking:
            _say(f"Left out: {promise.name} ({promise.lacking}).")
    if len(complete) == len(promises):
        write(lines, RESULTS)
        for page in PAGES:
            fill_page(read(RESULTS), page)
        _say(f"Written: {', '.join(str(path.relative_to(ROOT)) for path in (RESULTS, *PAGES))}.")
    held = [line for line in lines if line.bar is not None]
    missed = [line for line in held if line.verdict == "missed"]
    red = list(alarms(lines))
    _say(f"{len(held) - len(missed)} lines met, {len(missed)} missed, {len(missed) - len(red)} of these known.")
    _say(*news(lines), *(f"RED: {alarm}" for alarm in red))
    return 1 if red else 0


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
