"""LateLabels: labels come with time, and the ages of rows say which ones are still to come."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from scipy.linalg import block_diag
from scipy.special import softmax

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.posterior.arrival import ArrivalLikelihood
from darkmetrics._kernels.posterior.draws import gaussian_posterior, representatives
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.data.ages import Ages, are_ages, bin_start, read_ages
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.label_models.base import LabelModel, missing_prevalence
from darkmetrics.label_models.fitting import N_NODES, Material, check_n_nodes, draws_for
from darkmetrics.label_models.score_table import score_table
from darkmetrics.nodes import Nodes

# At most so many bins of ages; neighbours with the fewest labels are joined.
MOST_BINS = 30
# Prior of the log odds of a hazard: its level in the first bin, and how far it may move from bin to bin.
_LEVEL, _LEVEL_SD, _STEP = -2.0, 2.5, 1.0
# Standard deviations that the data weigh against each other: of what scores add to that, and of how far the log odds of
# a positive at one score wander over all times of scoring. Mostly they do neither, and allowing for it costs width.
_ZONES, _DRIFTS = (0.1, 0.7), (0.15, 1.5)
# At how many times that may turn.
_KNOTS = 20
# Labels of rows' own bins that differ by so many standard deviations, and by such a factor, from what older rows had:
# then labels come by the calendar.
_CLEARLY, _MUCH = 3.0, 1.25


@dataclass(frozen=True, eq=False)
class LateLabels(LabelModel):
    """Labels come with time: the age of a row says why its label is missing.

    Old rows are nearly complete, young ones are not; which labels come first (frauds confirmed late, good customers
    declared good by day 90) is seen from how positives and negatives fill up with age. Nothing has to be stated about
    why labels are missing. Delays are taken to be the same for all times of scoring; the share of positives at a score
    may drift slowly. What never arrives is what is left at the oldest age.

    Needs rows with ages: `age=` (and `delay=`, `maturity=`) of `evaluate`, or `scored_at=` of tables.

    Parameters
    ----------
    calibrator : {"flexible", "beta", "platt"}, Flexible, Beta or Platt
        The curve from scores to probabilities.
    n_nodes : int
        How many cases stand for what the labels leave open.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(3000)
    >>> y = rng.random(3000) < y_score
    >>> age, delay = rng.integers(0, 100, 3000), np.where(y, rng.exponential(40, 3000), rng.exponential(10, 3000))
    >>> y_true = np.where(delay <= age, y, np.nan)
    >>> result = dm.evaluate(y_true, y_score, age=age, metrics="precision")
    >>> print(f"{result['precision']}, in truth {y[y_score >= 0.5].mean():.3f}")
    <Discrete: mean 0.731, 90% interval 0.7185 to 0.7422, exact>, in truth 0.734
    """

    calibrator: CalibratorLike = "flexible"
    n_nodes: int = N_NODES

    def __post_init__(self) -> None:
        check_n_nodes(self.n_nodes)

    def nodes(self, data: EvaluationSet) -> Nodes:
        return self.fit(data).nodes(data)

    def fit(self, data: EvaluationSet) -> "Arrivals":
        """What the rows of a set say about when labels come, for the rows of this set or of a part of it."""
        ages = ages_of(data)
        material = Material.of(data)
        _check_classes(material)
        calibrator = material.logistic_calibrator(self.calibrator)
        starts = _bins(ages, data)
        oldest = float(bin_start(ages.age.max() + 1))
        grid = _Grid(
            calibrator, starts, _cuts(data), ages.whole, oldest, _knots(ages, data), _scores_at(data, (0.1, 0.5, 0.9))
        )
        rows = grid.rows(data)
        likelihood = _likelihood(grid, rows, ages, data, material.credit)
        draws = _draws(likelihood, grid, draws_for(self.n_nodes))
        p = likelihood.share(draws, rows.X, rows.place)
        above, below = p @ rows.decided, p @ (rows.missing - rows.decided)
        chosen = representatives(above, below, np.full(len(draws), 1.0 / len(draws)), self.n_nodes)
        return Arrivals(self, grid, likelihood, draws, chosen)

    def describe(self, data: EvaluationSet, nodes: Nodes) -> str:
        ages = ages_of(data)
        share = missing_prevalence(data, nodes)
        known = "ages and arrival times" if ages.timed.any() else "ages"
        return (
            f"Assumed: labels come with time, and later rows get them as earlier ones did ({known} of rows). Of the "
            f"{data.n_missing:,} missing rows {share.mean:.0%} ({share.low:.0%} to {share.high:.0%}) are positive."
        )


def ages_of(data: EvaluationSet) -> Ages:
    """The ages of the cells of a set, which must have them."""
    stratum = data.cells.stratum
    if not are_ages(stratum):
        raise InputError(
            "age: none with these rows (LateLabels). Give age= to evaluate or when building the EvaluationSet, or "
            "scored_at= and as_of= for a table."
        )
    assert stratum is not None
    return read_ages(stratum)


def _check_classes(material: Material) -> None:
    """Both classes have a label: ages tell when labels come, and of a class without any nothing is known."""
    positives, negatives = material.label_counts()
    if positives and negatives:
        return
    if positives:
        raise InputError(
            f"y_true: all {positives:,} labels are positive, and when negatives come no age can tell (LateLabels). If "
            "only positives ever come, say maturity=: the age from which a row without a label is negative."
        )
    found = f"all {negatives:,} labels are negative" if negatives else "no labelled row"
    raise InputError(
        f"y_true: {found}, so that ages cannot tell when labels come (LateLabels). Leave age and scored_at out, and "
        "give reference=(labels, scores) of fully labelled rows."
    )


def _bins(ages: Ages, data: EvaluationSet) -> IntArray:
    """The first bins of the grid of ages in each bin of the model."""
    cells = data.cells
    labels = cells.positives + cells.negatives
    size = int(ages.age.max()) + 1
    rows = np.bincount(ages.age, cells.total, size)
    events = np.bincount(ages.delay[ages.timed], labels[ages.timed], size)
    weight = rows + events
    starts = np.flatnonzero(weight)
    starts[0] = 0
    held = np.add.reduceat(weight, starts)
    while starts.size > MOST_BINS:
        at = int(np.argmin(held[1:] + held[:-1])) + 1
        held[at - 1] += held[at]
        starts, held = np.delete(starts, at), np.delete(held, at)
    return starts


def _cuts(data: EvaluationSet) -> FloatArray:
    """Scores at which the hazard may change: the middle one, and the threshold."""
    cells = data.cells
    middle = _scores_at(data, (0.5,))
    cuts = np.unique(middle if data.threshold is None else np.append(middle, data.threshold))
    return np.asarray(cuts[(cuts > cells.score[0]) & (cuts <= cells.score[-1])], dtype=np.float64)


def _scores_at(data: EvaluationSet, shares: tuple[float, ...]) -> FloatArray:
    """Scores that such shares of the rows lie below."""
    before = np.cumsum(data.cells.total)
    return np.asarray(data.cells.score[np.searchsorted(before, before[-1] * np.array(shares))], dtype=np.float64)


def _knots(ages: Ages, data: EvaluationSet) -> FloatArray:
    """Ages at which the curve of drift may turn: equally many rows lie between them."""
    order = np.argsort(-ages.age, kind="stable")
    before = np.cumsum(data.cells.total[order])
    at = np.searchsorted(before, np.linspace(0.0, 1.0, _KNOTS) * before[-1])
    ends = ages.age[order][np.minimum(at, order.size - 1)]
    return np.unique(0.5 * (bin_start(ends) + bin_start(ends + 1)))[::-1].copy()


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table by score and age: what the likelihood needs to know of them."""

    X: FloatArray
    place: IntArray
    positives: FloatArray
    negatives: FloatArray
    missing: FloatArray
    decided: FloatArray
    # The row of each cell of the set.
    of_cell: IntArray


@dataclass(frozen=True, eq=False)
class _Grid:
    """How scores and ages are told apart, for the set that was fitted and for parts of it."""

    calibrator: LogisticCalibrator
    # First bin of the grid of ages in each bin of the model.
    starts: IntArray
    cuts: FloatArray
    whole: bool
    oldest: float
    # Ages at which the curve of drift may turn, from the oldest on.
    knots: FloatArray
    # Scores that a tenth, half and nine tenths of the rows lie below.
    spread: FloatArray

    @property
    def bins(self) -> int:
        """How many bins of ages there are."""
        return self.starts.size

    @property
    def zones(self) -> int:
        """How many zones of scores there are."""
        return self.cuts.size + 1

    def bin_of(self, age: IntArray) -> IntArray:
        """The bin of the model for bins of the grid of ages."""
        return np.searchsorted(self.starts, age, side="right") - 1

    def zone_of(self, score: FloatArray) -> IntArray:
        """The zone of scores, from 0 on."""
        return np.searchsorted(self.cuts, score, side="right")

    @cached_property
    def edges(self) -> FloatArray:
        """The ages at which bins begin, and the end of the last one."""
        return np.append(bin_start(self.starts), self.oldest)

    @property
    def passed(self) -> FloatArray:
        """The share of its bin that a row has passed, if ages fill it evenly: of whole days the last is seen whole."""
        if not self.whole:
            return np.full(self.bins, 0.5)
        days = np.maximum(np.diff(np.ceil(self.edges)), 1.0)
        return np.asarray((days + 1.0) / (2.0 * days), dtype=np.float64)

    @cached_property
    def _ends(self) -> FloatArray:
        """The ages at which bins begin, and the end of the last one, as rows pass them: whole days are passed whole."""
        return np.ceil(self.edges) if self.whole else self.edges

    def later(self, bin_: IntArray, time: float) -> tuple[IntArray, FloatArray, BoolArray]:
        """Where rows of an age bin are after some time: bin, share of it that has passed, and whether there is one."""
        width = np.maximum(np.diff(self._ends), 1e-300)
        age = self._ends[bin_] + self.passed[bin_] * width[bin_] + time
        at = np.clip(np.searchsorted(self._ends, age, side="left") - 1, 0, self.bins - 1)
        return at, np.clip((age - self._ends[at]) / width[at], 0.0, 1.0), age <= self._ends[-1]

    @cached_property
    def drift(self) -> FloatArray:
        """Columns for the time of scoring (a row for each bin of ages): lines between knots, 0 at the oldest one."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        return np.column_stack([np.interp(-middle, -self.knots, unit) for unit in np.eye(self.knots.size)])[:, 1:]

    def _tilt(self, score: FloatArray) -> FloatArray:
        """The score on the calibrator's line, from -1 to 1 around its middle: what the drift may grow or fall with."""
        line = self.calibrator.line(score)
        low, middle, high = self.calibrator.line(self.spread)
        return np.asarray(np.clip((line - middle) / max(float(high - low) / 2.0, 1e-300), -1.0, 1.0), dtype=np.float64)

    def rows(self, data: EvaluationSet) -> Rows:
        """The table of a set by score, zone and age."""
        cells = data.cells
        assert cells.stratum is not None
        bin_ = self.bin_of(read_ages(cells.stratum).age)
        place = self.zone_of(cells.score) * self.bins + bin_
        level = score_table(data).place
        code, of_cell = np.unique(level * (self.bins * self.zones) + place, return_inverse=True)
        place = code % (self.bins * self.zones)

        def total(values: FloatArray | IntArray) -> FloatArray:
            return np.asarray(np.bincount(of_cell, values, code.size), dtype=np.float64)

        count = total(cells.total)
        score = np.clip(total(cells.total * cells.score) / count, cells.score[0], cells.score[-1])
        drift = self.drift[place % self.bins]
        X = np.hstack([self.calibrator.design(score), drift, self._tilt(score)[:, None] * drift])
        return Rows(
            X,
            place,
            total(cells.positives),
            total(cells.negatives),
            total(cells.missing),
            total(cells.missing * cells.decision),
            of_cell,
        )


def _likelihood(grid: _Grid, rows: Rows, ages: Ages, data: EvaluationSet, credit: float) -> ArrivalLikelihood:
    zone = grid.zone_of(data.cells.score)
    counts = arrival_counts(grid, ages, data, zone, grid.zones)
    at_age = np.bincount(grid.bin_of(ages.age), data.cells.total, grid.bins).astype(np.float64)
    if _by_calendar(grid, counts, at_age):
        counts = arrival_counts(grid, ages.untimed(), data, zone, grid.zones)
    prior_mean, prior_precision = _prior(grid, _ZONES[0], _DRIFTS[0])
    return ArrivalLikelihood(
        rows.X,
        rows.place,
        rows.positives,
        rows.negatives,
        rows.missing,
        **counts,
        passed=grid.passed,
        prior_mean=prior_mean,
        prior_precision=prior_precision,
        credit=credit,
    )


def arrival_counts(grid: _Grid, ages: Ages, data: EvaluationSet, zone: IntArray, zones: int) -> dict[str, FloatArray]:
    """Labels by class, zone and bin, as the likelihood tells them apart; `zone` is that of each cell."""
    cells, bins = data.cells, grid.bins
    age, delay = grid.bin_of(ages.age), grid.bin_of(np.maximum(ages.delay, 0))
    own = ages.timed & (delay == age) & ~ages.mature
    groups = {
        "full": (ages.timed & ~own, delay),
        "own": (own, delay),
        "untimed": (~ages.timed & ~ages.mature, age),
    }
    counts = {}
    for name, (which, bin_) in groups.items():
        at = (zone * bins + bin_)[which]
        both = [np.bincount(at, labels[which], zones * bins) for labels in (cells.positives, cells.negatives)]
        counts[name] = np.array(both, dtype=np.float64).reshape(2, zones, bins)
    # Negatives that the maturity declared have had no label in any bin before.
    declared = np.bincount(zone, cells.negatives * (ages.mature & ~ages.timed), zones)
    counts["last"] = np.array([np.zeros(zones), declared])
    return counts


def _by_calendar(grid: _Grid, counts: dict[str, FloatArray], rows: FloatArray) -> bool:
    """Whether labels come on certain days (a weekly file) so that delays of one row say little about those of others.

    Rows of a bin then have far more labels from within it (the file came today) or far fewer (it comes tomorrow) than
    older rows got in it, of which they have passed a share.
    """
    own, full = (counts[name].sum(axis=(0, 1)) for name in ("own", "full"))
    older = rows[::-1].cumsum()[::-1] - rows
    some = older > 0.0
    expected = float((grid.passed * rows * full)[some] @ (1.0 / older[some]))
    found = float(own[some].sum())
    differs = abs(found - expected) > _CLEARLY * np.sqrt(found + expected)
    return bool(differs and abs(np.log((found + 1.0) / (expected + 1.0))) > np.log(_MUCH))


def _prior(grid: _Grid, zone: float, drift: float) -> tuple[FloatArray, FloatArray]:
    """Mean and precision: the calibrator's own, drift, a random walk of log hazards for each class, zones."""
    bins, moves = grid.bins, grid.knots.size - 1
    calibrator = grid.calibrator
    curve = calibrator.prior_scale_
    walk = _walk(np.append(_LEVEL_SD, np.full(bins - 1, _STEP)))
    # The oldest knot is 0, and the steps to the others grow with the root of the time between them.
    path = _walk(drift * np.sqrt(-np.diff(grid.knots) / max(float(np.ptp(grid.knots)), 1e-300)))
    parts = [np.diag(curve**-2.0), path, path, walk, walk, np.eye(grid.zones - 1) * zone**-2.0]
    mean = [calibrator.prior_mean_, np.zeros(2 * moves), np.full(2 * bins, _LEVEL), np.zeros(grid.zones - 1)]
    return np.concatenate(mean), block_diag(*parts)


def _walk(steps: FloatArray) -> FloatArray:
    """Precision of a random walk that starts at its mean, with these standard deviations of steps."""
    moves = np.eye(steps.size) - np.eye(steps.size, k=-1)
    return np.asarray((moves.T * steps**-2.0) @ moves, dtype=np.float64)


def _draws(likelihood: ArrivalLikelihood, grid: _Grid, size: int) -> FloatArray:
    """Draws of the parameters, as many from each prior as the evidence gives it weight."""
    found, start = [], likelihood.prior_mean
    for zone, drift in product(_ZONES, _DRIFTS if grid.knots.size > 1 else _DRIFTS[:1]):
        own = replace(likelihood, prior_precision=_prior(grid, zone, drift)[1])
        found.append(gaussian_posterior(own, start, size))
        start = found[-1].parameters.mean(axis=0)
    evidence = np.array([draws.log_evidence for draws in found])
    ends = np.rint(size * np.cumsum(softmax(evidence))).astype(np.int64)
    first = np.append(0, ends[:-1])
    return np.concatenate([draws.parameters[a:b] for draws, a, b in zip(found, first, ends, strict=True)])


@dataclass(frozen=True, eq=False)
class Arrivals(LabelModel):
    """When labels come, as learnt from the rows of one set: a label model for that set and for parts of it."""

    model: LateLabels
    grid: _Grid
    likelihood: ArrivalLikelihood
    draws: FloatArray
    chosen: IntArray

    def rows(self, data: EvaluationSet) -> Rows:
        """The table of a set by score, zone and age."""
        return self.grid.rows(data)

    def nodes(self, data: EvaluationSet) -> Nodes:
        rows = self.rows(data)
        n = self.chosen.size
        p = self.likelihood.share(self.draws[self.chosen], rows.X, rows.place)
        return Nodes(np.full(n, 1.0 / n), p, bucket=rows.of_cell[data.missing_cells])

    def finer(self, n_draws: int) -> "Arrivals":
        """The same with so many draws, all of which are nodes: for sums over labels that no few nodes would hold."""
        draws = _draws(self.likelihood, self.grid, n_draws)
        return replace(self, draws=draws, chosen=np.arange(n_draws))

    def odds_of_coming(self, rows: Rows, at: IntArray, since: float, until: float) -> tuple[FloatArray, BoolArray]:
        """Log odds that labels are positive which come between two times from now (nodes x rows of the table).

        Also says for which rows they are known: nothing tells how labels come that take longer than any row is old.
        """
        zone, bin_ = np.divmod(rows.place[at], self.grid.bins)
        parameters = self.draws[self.chosen]
        start, share, _ = self.grid.later(bin_, since)
        end, passed, known = self.grid.later(bin_, until)
        hazard = self.likelihood.hazards(parameters)
        come = self.likelihood.log_share_coming(hazard, zone, (start, share), (end, passed))
        return parameters[:, : rows.X.shape[1]] @ rows.X[at].T + come[:, 0] - come[:, 1], known

    def describe(self, data: EvaluationSet, nodes: Nodes) -> str:
        return self.model.describe(data, nodes)
