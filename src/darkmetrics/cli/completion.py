"""What a shell offers when the tab key is pressed."""

from collections.abc import Callable


def words(*choices: str) -> Callable[[str], list[str]]:
    """Completion among a few words."""

    def matching(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return matching


def metrics(incomplete: str) -> list[str]:
    """Completion among the names of metrics."""
    import darkmetrics as dm

    return words(*dm.list_metrics())(incomplete)
