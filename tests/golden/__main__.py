"""Holds what the library says now against what it said when the file was written.

    PYTHONPATH=src:tests python -m golden            what differs by more than rounding; leaves with 1 if anything does
    PYTHONPATH=src:tests python -m golden --write    writes the file and the list of public names anew

A commit that changes either says in its message which keys or digits changed, and why.
"""

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

# Sums that are split over threads differ in their last digit. It is read when numpy is imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from golden.kept import API, differences, kept, now, rounding, versions, write, written_with
from golden.problems import NUMBER
from golden.public_api import public_api


def main() -> int:
    parser = argparse.ArgumentParser(prog="golden", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write anew instead of comparing")
    arguments = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        answers = list(pool.map(now, range(NUMBER), chunksize=8))
    if arguments.write:
        write(answers)
        API.write_text(public_api())
        return 0
    if versions() != written_with():
        print(f"The answers were written with {written_with()}; here is {versions()}, which may round otherwise.")
    before, seen, worst, rounded = kept(), Counter[str](), dict[str, float](), 0
    for number, answer in enumerate(answers):
        for path, old, new in differences(before[number], answer):
            if rounding(old, new):
                rounded += 1
                continue
            key = path.rsplit(".", 1)[-1]
            seen[key] += 1
            if isinstance(old, float) and isinstance(new, float):
                worst[key] = max(worst.get(key, 0.0), abs(new - old))
            if seen[key] <= 3:
                print(f"problem {number}: {path}: {old!r} is now {new!r}")
    for key, count in seen.most_common():
        print(f"{key}: {count} differ" + (f", by at most {worst[key]:.3g}" if key in worst else ""))
    same_api = API.read_text() == public_api()
    others = f" ({rounded} more by rounding alone)" if rounded else ""
    names = "as before" if same_api else "DIFFER"
    print(f"{NUMBER} problems, {sum(seen.values())} differences{others}; public names {names}.")
    return int(bool(seen) or not same_api)


if __name__ == "__main__":
    sys.exit(main())
