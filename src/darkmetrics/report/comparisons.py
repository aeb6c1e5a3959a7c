"""What a page over groups says of their differences: the newest period against the one before, trends, gaps."""

from collections.abc import Sequence

from darkmetrics.exceptions import InputError
from darkmetrics.monitoring import GroupedEvaluation
from darkmetrics.monitoring.group_names import group_text, key_text
from darkmetrics.monitoring.summary import Key

# Each of these is evaluated again: segments and periods of them, groups whose gap is found, metrics.
_SEGMENTS, _PERIODS, _GROUPS, _METRICS = 4, 24, 24, 2


def compared(result: GroupedEvaluation, time: str | None, metrics: Sequence[str]) -> list[str]:
    """Sentences about differences between groups, as many as a reader reads; none where labels do not suffice."""
    if time is None:
        return [] if len(result) > _GROUPS else _gaps(result, metrics[:_METRICS])
    place = result.names.index(time)
    others = [name for name in result.names if name != time]
    lines: dict[Key, list[Key]] = {}
    for key in result.groups:
        if key[place] is not None:
            lines.setdefault(key[:place] + key[place + 1 :], []).append(key)
    found = []
    for segment, keys in list(lines.items())[:_SEGMENTS]:
        whose = f"{group_text(others, segment, None, None)}: " if segment else ""
        found += [f"{whose}{text}" for text in _over_time(result, segment, place, keys, metrics[:_METRICS])]
    return found


def _over_time(
    result: GroupedEvaluation, segment: Key, place: int, keys: Sequence[Key], metrics: Sequence[str]
) -> list[str]:
    """The newest period that says enough against the one before it, and the trend over all of them."""
    told = [key for key in keys if not result.groups[key].too_small]
    if len(told) < 2:
        return []
    after, before = told[-1], told[-2]
    change = result.change(after, before)
    names = " against ".join(key_text(key[place], result.every) for key in (after, before))
    texts = [f"{names}: {change.sentence(name)}" for name in metrics]
    if 2 < len(told) <= _PERIODS:
        texts += [result.trend(name, segment or None).words()[0] for name in metrics]
    return texts


def _gaps(result: GroupedEvaluation, metrics: Sequence[str]) -> list[str]:
    """How far groups are apart."""
    try:
        return [text for name in metrics for text in result.gap(name).words()]
    except InputError:  # fewer than two groups have enough labels
        return []
