"""What is believed about the missing labels that models share: nodes of a label model on their joint score."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._text import short
from darkmetrics.comparison.joint_score import JointScore, moved
from darkmetrics.comparison.rows import Ordered, SharedRows, named_scores
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import check_finite, read_labels
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.missing import Fixed, Mechanism
from darkmetrics.missingness.choice import stated_mechanism
from darkmetrics.missingness.fixed import has_probabilities
from darkmetrics.missingness.reference import Reference, reference_set
from darkmetrics.posterior import Posterior
from darkmetrics.question import Question
from darkmetrics.wording import code

# Which model is better turns on the weights of the models, so that these have as many cases as this at least.
_NODES = 256
# What the law under the probabilities of all models together is called beside those of single ones.
ALL_TOGETHER = "all scores together"


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Nodes for the cells of the shared rows that hold missing rows, and what they came from."""

    posterior: Posterior
    # The rows by their joint score, and the nodes that the label model has for them; the rows of one model and its own
    # nodes where a single model is believed.
    data: EvaluationSet
    of_data: Posterior
    assumption: str
    # How many labels, reference rows included, all scores together were learned from; None where nothing was.
    labels: int | None = None

    def evaluation(
        self,
        question: Question,
        rows: Ordered,
        rng: np.random.Generator,
        name: str,
        distributions: Iterator[MetricDistribution] | None = None,
    ) -> Evaluation:
        """Evaluate one model, which warnings call `name`, on the rows as it orders them."""
        own = select_cells(self.posterior, rows.place)
        return question.answer_given(
            Posterior(own.weight, own.probability, own.column),
            rows.data,
            rng,
            assumption=self.assumption,
            arguments={},
            stated=stated_mechanism(question.model, question.missingness) or "probabilities",
            whose=f" of {short(name)}",
            known=distributions,
        )


def select_cells(posterior: Posterior, cells: IntArray) -> Posterior:
    """Return the posterior of these cells, in this order; it shares the probabilities."""
    return replace(posterior, column=cells if posterior.column is None else posterior.column[cells])


def joint_beliefs(rows: SharedRows, question: Question, reference: Any) -> Beliefs:
    """Probabilities learned from the scores of all models together."""
    if has_probabilities(question.model):
        return _given(rows)
    kinds, score, total = rows.by_kind, rows.by_kind.score, rows.by_kind.total
    labeled = np.flatnonzero(kinds.positives + kinds.negatives)
    known = (counts[labeled].astype(np.float64) for counts in (kinds.positives, kinds.negatives))
    learned = [score[:, labeled], *known]
    held_out = None if reference is None else _reference(rows, reference)
    if held_out is not None:
        learned = [np.concatenate(pair, axis=-1) for pair in zip(learned, held_out, strict=True)]
    joint = JointScore.fit(score, total, (learned[0], learned[1], learned[2]), np.array(rows.thresholds))
    line = joint.of(score)
    cut = _cut(line, total, float(np.mean(rows.decision @ (rows.positives + rows.negatives + rows.missing))))
    model: Any = question.model
    if held_out is not None:
        model = replace(model, reference=_set(joint.of(held_out[0]), held_out[1], held_out[2], 0.0 * held_out[1], cut))
    data = _set(line, kinds.positives, kinds.negatives, kinds.missing, cut)
    model, posterior = _nodes(model, data, question)
    about = model.describe(data, posterior) if data.n_missing else ""
    needed = np.flatnonzero(kinds.missing)
    base = posterior.on_all_cells.probability[:, _columns(line, data)[needed]]
    weight, p = posterior.weight, base
    mechanism = posterior.mechanism
    if len(posterior) > 1:
        times = -(-_NODES // len(posterior))
        p, weight = np.repeat(base, times, axis=0), np.repeat(weight / times, times)
        mechanism = None if mechanism is None else np.repeat(mechanism, times)
        p = moved(p, joint.draws(len(p)) @ joint.deviations(score[:, needed]).T)
    number = np.zeros(total.size, dtype=np.int64)
    number[needed] = np.arange(needed.size)
    column = kinds.on_open(rows, number)
    shared = Posterior(weight, p, column=column, mechanism=mechanism, mechanisms=posterior.mechanisms)
    return Beliefs(shared, data, posterior, about, int(learned[1].sum() + learned[2].sum()))


def _columns(line: FloatArray, data: EvaluationSet) -> IntArray:
    """For each kind its place among the missing cells of the set that was made of their lines, where it has one."""
    column = np.zeros(line.size, dtype=np.int64)
    column[np.argsort(line, kind="stable")[data.missing_cells]] = np.arange(data.missing_cells.size)
    return column


def own_beliefs(rows: SharedRows, model: int, question: Question, reference: Any) -> Beliefs:
    """Probabilities that a single model's calibration has, as if it were evaluated by itself."""
    kinds = rows.by_kind
    data = _set(kinds.score[model], kinds.positives, kinds.negatives, kinds.missing, rows.thresholds[model])
    learner: Any = question.model
    if reference is not None:
        name = rows.names[model]
        if isinstance(reference, SharedRows):
            own = reference.of(reference.index(name, "reference")).data.labeled()
        else:
            own = reference_set(Reference(reference.y_true, reference.y_score[name]), rows.pos_label)
        learner = replace(learner, reference=own)
    found, posterior = _nodes(learner, data, question)
    column = kinds.on_open(rows, _columns(kinds.score[model], data))
    if posterior.column is not None:
        column = posterior.column if column is None else posterior.column[column]
    return Beliefs(replace(posterior, column=column), data, posterior, found.describe(data, posterior))


def _given(rows: SharedRows) -> Beliefs:
    """Probabilities that came with the rows, believed as they are."""
    assert rows.probability is not None
    posterior = Posterior.single(rows.probability[rows.open])
    none = 0 * rows.missing[rows.open]
    data = _set(rows.probability[rows.open], none, none, rows.missing[rows.open], 0.5)
    return Beliefs(posterior, data, posterior, Fixed().describe(data, posterior) if rows.open.size else "")


def _nodes(model: Mechanism, data: EvaluationSet, question: Question) -> tuple[Mechanism, Posterior]:
    model = replace(question, model=model).model_of(data)
    posterior = model.posterior(data)
    posterior.check_independent("a comparison needs")
    return model, posterior


def _set(line: FloatArray, positives: Any, negatives: Any, missing: Any, cut: float) -> EvaluationSet:
    order = np.argsort(line, kind="stable")
    counts = {"positives": positives, "negatives": negatives, "missing": missing}
    sorted_counts: dict[str, Any] = {name: np.asarray(c)[order].astype(np.int64) for name, c in counts.items()}
    cells = Cells(line[order], line[order] >= cut, **sorted_counts)
    return EvaluationSet.from_cells(cells, threshold=cut)


def _cut(line: FloatArray, total: FloatArray, flagged: float) -> float:
    """The joint score from which on as many rows are flagged as the models flag on average."""
    order = np.argsort(-line, kind="stable")
    at = int(np.searchsorted(np.cumsum(total[order]), flagged))
    return float(line[order[min(at, line.size - 1)]])


def _reference(rows: SharedRows, reference: Any) -> Sequence[FloatArray]:
    """Return scores (models x rows), positives and negatives of fully labeled rows."""
    if isinstance(reference, SharedRows):
        return reference.labeled
    if not isinstance(reference, Reference) or isinstance(reference.y_true, EvaluationSet):
        raise InputError(
            "reference",
            "no scores by model",
            f"It must be {code('dm.missing.Reference(labels, scores)')}, with an array of scores by the name of each "
            "model.",
        )
    named = named_scores(reference.y_score, "reference", fewest=0)  # those that lack are named
    lacking = next((name for name in rows.names if name not in named), None)
    if lacking is not None:
        raise InputError("reference", f"no scores of {lacking!r}", "Reference rows need those of every model.")
    labels, gaps = frames.label_column(reference.y_true, "reference")
    columns = []
    for name in rows.names:
        column = frames.number_column(named[name], "reference")
        if column.size != labels.size:
            finding = f"{column.size:,} scores of {name!r} for {labels.size:,} labels"
            raise InputError("reference", finding, "Both need one per row.")
        check_finite(column, "reference", "Scores must be finite.", "Drop or impute those rows.")
        columns.append(column)
    positive, gaps, _classes = read_labels(labels, gaps, rows.pos_label, None, "reference")
    kept = ~gaps
    return [np.stack(columns)[:, kept], positive[kept].astype(np.float64), (~positive)[kept].astype(np.float64)]
