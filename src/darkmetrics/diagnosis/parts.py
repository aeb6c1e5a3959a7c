"""What the parts of a diagnosis share: the level of their tests, bins, and the reason why one is absent."""

from darkmetrics.label_models.fitting import Material

# Below this chance of a result as extreme, what was tested is called refuted.
LEVEL = 0.05


class AbsentError(Exception):
    """A part that cannot be computed; the message says why."""


def need_missing(material: Material) -> None:
    """There are rows without a label."""
    if material.data.n_missing == 0:
        raise AbsentError("no label is missing.")


def need_labelled(material: Material) -> None:
    """There are rows with a label."""
    if material.data.n_labelled == 0:
        raise AbsentError("no row has a label.")
