"""Guess which columns of a table hold labels and scores, by their names."""

from collections.abc import Sequence

_WORDS = {
    "label": (
        *("label", "y_true", "target", "y", "truth", "outcome", "actual", "is_fraud", "fraud", "default", "class"),
        *("labels", "true_label", "ground_truth"),
    ),
    "score": (
        *("score", "y_score", "p", "prob", "proba", "probability", "prediction", "pred", "y_pred_proba", "p_fraud"),
        *("scores", "y_prob", "y_proba", "pred_proba", "p_hat"),
    ),
}
# Shorter words are in too many names.
_MIN_LENGTH = 3


def guess_columns(columns: Sequence[str]) -> tuple[str, str]:
    """Return the columns that most likely hold labels and scores; names decide.

    Examples
    --------
    >>> from darkmetrics.frames.guessing import guess_columns
    >>> guess_columns(["id", "fraud", "model_score"])
    ('fraud', 'model_score')
    """
    label = next(iter([*likely_columns(columns, "label"), *columns, "label"]))
    others = [name for name in columns if name != label]
    return label, next(iter([*likely_columns(others, "score"), *others, "score"]))


def likely_columns(columns: Sequence[str], kind: str) -> list[str]:
    """Return the columns with a usual name of a "label" or a "score", or else with a name that contains such a word.

    Case and signs such as dashes do not count. A name with a word of a score is no label: "fraud_probability".

    Examples
    --------
    >>> from darkmetrics.frames.guessing import likely_columns
    >>> likely_columns(["id", "True Label", "fraud_flag"], "label"), likely_columns(["id", "model_score"], "score")
    (['True Label'], ['model_score'])
    """
    exact = [name for name in columns if _plain(name) in map(_plain, _WORDS[kind])]
    scores = [name for name in columns if _has_word(name, "score")]
    return exact or (scores if kind == "score" else [n for n in columns if _has_word(n, kind) and n not in scores])


def _has_word(name: str, kind: str) -> bool:
    return any(_plain(word) in _plain(name) for word in _WORDS[kind] if len(word) >= _MIN_LENGTH)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
