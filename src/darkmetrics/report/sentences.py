"""The sentences of a report."""

from collections.abc import Iterable, Mapping
from typing import Any

from darkmetrics._text import called
from darkmetrics.evaluation import Evaluation
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.tables import level_text

_METHODS = {
    "exact": "every value that the missing labels allow, with its probability; nothing is drawn and nothing rounded",
    "near exact": "as exact, up to a grid or an expansion finer than anything printed here",
    "monte carlo": "the missing labels are drawn at random many times, and the metric is computed each time",
    "gaussian": "a normal law with the mean and variance of the metric, which is close when many labels are missing",
    "first order": "a law with the mean of the metric and its variance, that of the labels and that of sampling rows, "
    "the latter from how far one row more would move it",
}
# What another word means for a population.
_IN_POPULATION = {
    "gaussian": "a mixture of normal laws, one for each curve that the labels allow, with the variance of the labels "
    "and that of sampling rows",
    "exact": "every value of the counts that the missing labels allow, each with the law that it leaves for the "
    "population; nothing is drawn",
}


def headline(name: str, entry: Mapping[str, Any], counts: Mapping[str, int], scope: str = "rows") -> str:
    """What is known of one metric, in a sentence.

    Examples
    --------
    >>> from darkmetrics.report.sentences import headline
    >>> entry = {"mean": 0.81, "low": 0.77, "high": 0.85, "labeled_only": 0.88, "undefined": 0.0}
    >>> headline("recall", entry | {"confidence_level": 0.9}, {"missing": 30, "labeled": 70})
    'recall is 0.810, 90% between 0.770 and 0.850; dropping unlabeled rows would have said 0.880'
    """
    name = called(name)
    mean, low, high = entry["mean"], entry["low"], entry["high"]
    if mean is None:
        return f"{name} is 0/0 whatever the missing labels are"
    level, where = level_text(entry["confidence_level"]), "" if scope == "rows" else " in the population"
    text = f"{name} is {shown(mean, low, high)}{where}, {level} between {interval_shown(low, high, ' and ')}"
    if not counts["missing"]:
        return f"{name} is {shown(mean)}; no label is missing" if scope == "rows" else f"{text}; no label is missing"
    if low == high:
        text = f"{name} is {shown(mean)}, almost certainly"
    if not counts["labeled"]:
        text += "; no row has a label, so dropping unlabeled rows would leave nothing"
    elif entry["labeled_only"] is None:
        text += "; on the labeled rows alone it is 0/0"
    else:
        text += f"; dropping unlabeled rows would have said {shown(entry['labeled_only'], low, high)}"
    if entry["undefined"] > 0.0:
        text += f"; with probability {percent(entry['undefined'])} it is 0/0"
    return text


def target_met(name: str, target: Mapping[str, Any]) -> str:
    """The chance of a target, in a sentence."""
    name = called(name)
    side = "at most" if target["side"] == "at most" else "at least"
    if target["probability"] is None:
        return f"whether {name} is {side} {target['value']:g} cannot be said: it is 0/0"
    return f"the chance that {name} is {side} {target['value']:g} is {percent(target['probability'])}"


def tipping_point(point: Mapping[str, Any], what_if: Mapping[str, Any]) -> str:
    """Where a metric crosses a value, in a sentence."""
    name = called(point["metric"])
    value = f"{point['what']} ({shown(point['value'])})"
    places = [percent(share) for share in point["shares"]]
    if not places:
        reached = [mean for mean in what_if["metrics"][point["metric"]]["mean"] if mean is not None]
        if not reached or point["value"] is None:
            return f"{name} cannot be compared with {value}"
        above, below = max(reached) - point["value"], point["value"] - min(reached)
        side = "above" if above >= below else "below"
        touches = "at or " if min(above, below) > -1e-9 else ""
        return f"{name} stays {touches}{side} {value} whatever share of the missing rows is positive"
    return f"{name} crosses {value} when {' and '.join(places)} of the missing rows are positive"


def assumed(evaluation: Evaluation) -> str:
    """Why labels are missing, as stated or mixed, in a line for the head of a page."""
    if not evaluation.data.n_missing:
        return "nothing: no label is missing"
    return evaluation.assumption.partition("\n")[0].removeprefix("Assumed: ")


def assumptions(evaluation: Evaluation) -> list[str]:
    """What the numbers rest on, sentence by sentence."""
    _, *words = evaluation._words()
    if not evaluation.data.n_missing:
        # What buckets have moved is the last note, where there is one.
        moved = evaluation._notes()[-1:] if evaluation.data.score_bins is not None else []
        if evaluation.scope == "population":
            moved = evaluation._notes()
        return ["No label is missing, so that nothing is assumed: every number is what it is.", *moved]
    if evaluation.posterior.independent:
        words.append("Given these probabilities, the missing labels are taken as independent of each other.")
    if len(evaluation.posterior) > 1:
        words.append(
            "The probabilities are learned from data, and what is not known about them is part of every interval."
        )
    else:
        words.append("The probabilities are taken as right; if they are off, so are the intervals.")
    return [*words, *_sampled(evaluation), *evaluation._notes()]


def _sampled(evaluation: Evaluation) -> list[str]:
    """What the population rests on besides."""
    if evaluation.scope == "rows":
        return []
    return ["The rows are taken as a random sample of the population, each drawn by itself."]


def method(evaluation: Evaluation) -> list[str]:
    """How the distributions were found, in plain words."""
    return methods(
        ((name, distribution.method) for name, distribution in evaluation.distributions.items()), evaluation.scope
    )


def methods(found: Iterable[tuple[str, str]], scope: str = "rows") -> list[str]:
    """How each thing was found, of which there are the name and the method, in plain words."""
    known = _METHODS if scope == "rows" else _METHODS | _IN_POPULATION
    ways: dict[str, dict[str, None]] = {}
    for name, way in found:
        ways.setdefault(way, {})[name] = None
    return [
        f"{', '.join(map(called, names))}: {way}, {known.get(way, 'a method of your own')}."
        for way, names in ways.items()
    ]
