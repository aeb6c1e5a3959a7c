"""The promises in figures; see promises.py for what they are, and `make guarantees` for all of them.

Pieces come first, so that processes share the work; promises are then checked from what is there. One alone:
`pytest -m guarantees -k "piece and selection and 50"`, or `-k "promise and drift"`.
"""

import pytest

from guarantees.lines import alarms
from guarantees.promises import PROMISES, pieces_of

pytestmark = pytest.mark.guarantees


@pytest.mark.parametrize("piece", pieces_of(PROMISES), ids=lambda piece: piece.name)
def test_piece_is_measured(piece):
    assert piece.figures()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_promise_is_kept_or_known_to_be_missed(promise):
    if promise.lacking:
        pytest.skip(promise.lacking)
    assert not list(alarms(promise.lines()))
