"""What is stored of a thing, or sent to another process: what it was made of, and not what was found out since."""

from functools import cached_property
from typing import Any


def made_of(thing: object) -> dict[str, Any]:
    """The state of a thing without its cached properties: they may be large, and are found again when asked for.

    Examples
    --------
    >>> from darkmetrics.storing import made_of
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None], [0.9, 0.2, 0.7])
    >>> data.n_missing, "_counts" in vars(data), "_counts" in made_of(data)
    (1, True, False)
    """
    kind = type(thing)
    return {
        name: value for name, value in vars(thing).items() if not isinstance(getattr(kind, name, None), cached_property)
    }
