"""What stands below the table of an evaluation: what its intervals are for, what is proven, what would narrow it."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import THRESHOLD, DefaultThreshold
from darkmetrics.distributions import Interval, MetricDistribution
from darkmetrics.exceptions import warn
from darkmetrics.metrics import ConfusionMetric, Metric
from darkmetrics.missingness.mixture import BY_LABEL, BY_REFERENCE, BY_SCORE, MIN_STATED, mechanism_weights
from darkmetrics.posterior import Posterior
from darkmetrics.tables import chance_text, level_text
from darkmetrics.wording import Message, code, setting

# Fraction of rows with scores outside [0, 1] that is ignored.
_NEGLIGIBLE = 0.001


def scope_in_words(scope: str, rows: int) -> str:
    """Which of the two the intervals are for: the rows, or the population that they came from."""
    these = "this row" if rows == 1 else f"these {rows:,} rows"
    if scope == "population":
        return f"Intervals are for the population that {these} came from, not for the rows."
    return f"Intervals are for {these}, not for the population they came from."


def threshold_in_words(data: EvaluationSet, metrics: Iterable[Metric]) -> list[str]:
    """What a threshold made for probabilities does to scores that are none, such as percentages."""
    low, high = float(data.cells.score[0]), float(data.cells.score[-1])
    if data.threshold != THRESHOLD or (low >= 0.0 and high <= 1.0):
        return []
    if not any(isinstance(metric, ConfusionMetric) for metric in metrics):
        return []
    flagged = int(data.cells.total[data.cells.decision].sum())
    text = f"Rows with a score of at least {THRESHOLD:g} are predicted positive: {flagged:,} of {data.n_rows:,} rows. "
    return [f"{text}Scores range from {low:.4g} to {high:.4g}; pass the threshold if another one is in use."]


def warn_of_default_threshold(sets: Sequence[EvaluationSet], metrics: Iterable[Metric], model: str = "") -> None:
    """Warn if the default threshold decides predictions that metrics use, and the scores are no probabilities.

    A fraction of at most 0.1% of the rows may have a score outside [0, 1]. `sets` are disjoint sets of rows with scores
    of the same model, `model` is its name if there are several.
    """
    if not any(isinstance(metric, ConfusionMetric) for metric in metrics):
        return
    cells = [data.cells for data in sets if isinstance(data.threshold, DefaultThreshold)]
    n_rows = sum(int(group.total.sum()) for group in cells)
    n_outside = sum(int(group.total[(group.score < 0.0) | (group.score > 1.0)].sum()) for group in cells)
    if n_outside <= _NEGLIGIBLE * n_rows:
        return
    low, high = min(float(group.score.min()) for group in cells), max(float(group.score.max()) for group in cells)
    n_positive = sum(int(group.total[group.decision].sum()) for group in cells)
    warn(
        f"Scores{model and f' of {model}'} range from {low:.4g} to {high:.4g}, so they are not probabilities, but no "
        f"threshold was passed. Rows with a score of {THRESHOLD:g} or more were predicted positive: "
        f"{n_positive:,} of {n_rows:,} rows ({n_positive / n_rows:.1%}). Pass {setting('threshold')} or the "
        f"predictions ({setting('y_pred')}). Set {setting('threshold', float(THRESHOLD))} to silence this warning.",
        UserWarning,
    )


def proven(distributions: dict[str, MetricDistribution]) -> str:
    """Return a sentence on the proven error bounds of approximate distributions."""
    proofs = {name: distribution.certificate for name, distribution in distributions.items()}
    useful = [
        f"{proof.ks_bound:.2g} ({name}{'' if proof.confidence == 1.0 else f', {level_text(proof.confidence)} sure'})"
        for name, proof in proofs.items()
        if proof is not None and not proof.vacuous
    ]
    useless = [name for name, proof in proofs.items() if proof is None or proof.vacuous]
    texts = [f"Probabilities have an error of at most {', '.join(useful)}."] if useful else []
    texts += [f"No error bound is proven for {', '.join(useless)}."] if useless else []
    return " ".join(texts)


def describe_undefined(probabilities: Mapping[str, float]) -> list[str]:
    """Return a line on metrics that may be undefined (0/0), with the probability that they are.

    Examples
    --------
    >>> from darkmetrics.footnotes import describe_undefined
    >>> describe_undefined({"precision": 0.012, "recall": 0.0})
    ['Undefined (0/0) with probability 1.2% (precision).']
    """
    texts = [f"{chance_text(p)} ({name})" for name, p in probabilities.items() if p > 0.0]
    return [f"Undefined (0/0) with probability {', '.join(texts)}."] if texts else []


def describe_binning(score_bins: int, effects: Mapping[str, float]) -> str:
    """How far bins can have moved the metrics, in a sentence."""
    moved = [f"{name} by at most {rounded_up(effect):.2g}" for name, effect in effects.items() if effect > 0.0]
    unknown = [name for name, effect in effects.items() if np.isnan(effect)]
    exact = [name for name, effect in effects.items() if effect == 0.0]
    text = f"Scores are in {score_bins:,} bins"
    if moved:
        text += f": that moves {', '.join(moved)}"
    if exact:
        text += f"{';' if moved else ':'} {', '.join(exact)} {'is' if len(exact) == 1 else 'are'} exact"
    return text + "." + (f" How far it moves {', '.join(unknown)} is not known." if unknown else "")


def rounded_up(bound: float) -> float:
    """Two digits of a bound, which must not become smaller in print."""
    unit = 10.0 ** (np.floor(np.log10(bound)) - 1.0)
    return float(np.ceil(bound / unit) * unit)


# Reasons as they follow "labels are missing".
_IN_WORDS = {
    "by score": "by score or at random",
    "by label": "by label alone",
    "both": "by score and label both",
    "as the reference says": "as the reference rows say",
}


def what_narrows(
    distributions: Mapping[str, MetricDistribution],
    intervals: Mapping[str, Interval],
    posterior: Posterior,
    level: float,
) -> str:
    """Which statements would narrow an answer that mixes mechanisms, with the width of the first metric under each.

    Empty where nothing is mixed, and where reference rows are there that the labeled ones contradict.
    """
    if not posterior.mechanisms or mechanism_weights(posterior)[BY_REFERENCE]:
        return ""
    open_ = (
        name
        for name, distribution in distributions.items()
        if distribution.by_draw is not None and np.ptp(intervals[name]) > 0.0
    )
    name = next(open_, None)
    by_score = by_label = ""
    if name is not None:
        whole = float(np.ptp(intervals[name]))
        known = [_width(distributions[name], posterior, mechanism, level) for mechanism in (BY_SCORE, BY_LABEL)]
        by_score, by_label = f" ({name} known to within {known[0]} instead of {_short(whole)})", f" ({known[1]})"
    text = f"Set {setting('missingness', 'random', 'by_score')}{by_score}"
    if mechanism_weights(posterior)[BY_LABEL] >= MIN_STATED:
        text += f", 'by_label'{by_label}"
    return Message(f"{text}, or pass {code('dm.missing.Reference, Delayed or Propensity', 'mechanisms')}.")


def _width(distribution: MetricDistribution, posterior: Posterior, mechanism: int, level: float) -> str:
    """The width of a metric's interval at the nodes of one mechanism, each of which is nearly a Gaussian."""
    assert distribution.by_draw is not None
    own = np.flatnonzero(posterior.mechanism == mechanism)
    weight, mean, var = (part[own] for part in distribution.by_draw)
    if not weight.sum() > 0.0:
        return "nothing known"
    tail = 0.5 * (1.0 - level)
    low, high = (normal_mixture_quantile(q, weight / weight.sum(), mean, np.sqrt(var)) for q in (tail, 1.0 - tail))
    lowest, highest = distribution.support()
    return _short(min(high, highest) - max(low, lowest))


def _short(width: float) -> str:
    return f"{width:.2g}"


def met_in_words(chances: Mapping[str, float], enough: float) -> str:
    """Return under which mechanisms a target is met, as the end of a sentence; empty if there is one mechanism."""
    if not chances:
        return ""
    met = {mechanism: chance >= enough for mechanism, chance in chances.items()}
    yes, no = (_listed(((r, chances[r]) for r, m in met.items() if m is side)) for side in (True, False))
    if not yes:
        return f"not met if labels are missing {no}"
    return f"met if labels are missing {yes}" + (f", not if {no}" if no else "")


def _listed(chances: Iterable[tuple[str, float]]) -> str:
    return " or ".join(f"{_IN_WORDS.get(mechanism, mechanism)} ({chance:.4g})" for mechanism, chance in chances)
