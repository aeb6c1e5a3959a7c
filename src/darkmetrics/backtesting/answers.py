"""What one repeat of a backtest finds, and what all of them come to."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from darkmetrics.backtesting.scores import Scores
from darkmetrics.distribution import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import CalibrationWarning, InputError, MissingnessWarning, UndefinedMetricWarning


class Found(NamedTuple):
    """What a repeat found: the truth by metric; centre, low, high and PIT by setup and metric; why setups failed."""

    truth: Mapping[str, float]
    laws: dict[tuple[str, str], tuple[float, ...]]
    failures: dict[str, str]
    note: str = ""

    def add(self, setup: str, answer: Callable[[], Evaluation], within: float) -> None:
        """Adds what a setup answers, without its warnings; `within` says where in a jump the truth falls."""
        try:
            with warnings.catch_warnings():
                for category in (MissingnessWarning, CalibrationWarning, UndefinedMetricWarning):
                    warnings.simplefilter("ignore", category)
                laws = answer()
        except InputError as error:
            self.failures[setup] = str(error)
            return
        for metric, truth in self.truth.items():
            law = laws[metric]
            low, high = law.interval(laws.confidence_level)
            self.laws[setup, metric] = (law.mean(), low, high, _pit(law, truth, within))


def collected(found: Sequence[Found], setup: str, metric: str) -> Scores:
    """The scores of a setup and metric over all repeats."""
    rows = np.array([(repeat.truth[metric], *repeat.laws.get((setup, metric), (np.nan,) * 4)) for repeat in found])
    kept = np.isfinite(rows).all(axis=1)
    truth, centre, low, high, pit = rows[kept].T
    return Scores(truth, centre, low, high, pit, n_failed=int((~kept).sum()))


def notes_of(found: Sequence[Found], setups: Iterable[str], repeat: str = "repeat") -> list[str]:
    """What had to be given up: rows to hide, metrics that are 0/0 with all labels, setups that gave no law."""
    notes = list(dict.fromkeys(one.note for one in found if one.note))
    undefined = [name for name in found[0].truth if not any(np.isfinite(one.truth[name]) for one in found)]
    notes += [f"{name} is undefined with all labels: there is nothing to compare with." for name in undefined]
    for setup in setups:
        reasons = [one.failures[setup] for one in found if setup in one.failures]
        if reasons:
            count = f"{len(reasons):,} of {len(found):,} {repeat}{'' if len(found) == 1 else 's'}"
            notes.append(f"{setup!r} gave no law in {count}. {reasons[0]}")
    return notes


def check_any(scores: Mapping[str, Mapping[str, Scores]], notes: Iterable[str], where: str) -> None:
    """Some setup has a law of some metric in some repeat."""
    if not any(of_metric.n for of_setup in scores.values() for of_metric in of_setup.values()):
        raise InputError(f"label_models: no law of any metric in {where}. {' '.join(notes) or 'All are undefined.'}")


def _pit(law: MetricDistribution, truth: float, within: float) -> float:
    """F(t-) + within (F(t) - F(t-)): uniform for a law that is right, even if it jumps at the truth."""
    middle = law.pit(truth)
    return float(np.clip(middle + (2.0 * within - 1.0) * (law.cdf(truth) - middle), 0.0, 1.0))
