"""LateLabels: labels come with time, and the ages of rows say which ones are still to come."""

from dataclasses import dataclass, replace

import numpy as np

from darkmetrics._kernels.age_grid import EDGES, Ages, bin_start
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.posterior.arrival import ArrivalLikelihood
from darkmetrics._kernels.posterior.draws import posterior_mode, representatives
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.label_models.late_grid import Day, Grid, Rows, grid_of
from darkmetrics.label_models.late_prior import prior, usual, weighed_draws
from darkmetrics.missingness.base import LabelModel, missing_prevalence, of_weight
from darkmetrics.missingness.fit_data import N_NODES, FitData, check_n_nodes
from darkmetrics.missingness.sampling import draws_for
from darkmetrics.posterior import Posterior

# The oldest age is at least so many times the first step of the grid, as two months of whole days are.
_LEAST_SPAN = 64.0
# Rows of a table from which on the mode is first looked for with so many neighbours as one.
_MANY_ROWS, _NEIGHBOURS = 4096, 16
# Labels of rows' own bins that differ by so many standard deviations, and by such a factor, from what older rows had:
# then labels come by the calendar.
_CLEARLY, _MUCH = 3.0, 1.25
# Labels of a class that come on one day of a bin (all good customers on day 90): how clearly rows of that bin must show
# it, by standard scores, how many bins may have such a day, and how much of their rows may have passed it.
_DAY_CLEAR, _MOST_DAYS, _DAY_ENDS = 3.5, 2, (0.01, 0.99)


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
    <Discrete: mean 0.7289, 90% interval 0.7151 to 0.7402, exact>, in truth 0.734
    """

    calibrator: CalibratorLike = "flexible"
    n_nodes: int = N_NODES

    def __post_init__(self) -> None:
        check_n_nodes(self.n_nodes)

    def nodes(self, data: EvaluationSet) -> Posterior:
        return self.learn(data)[1]

    def fit(self, data: EvaluationSet) -> "Arrivals":
        """What the rows of a set say about when labels come, for the rows of this set or of a part of it."""
        return self._fitted(data)[0]

    def learn(self, data: EvaluationSet) -> tuple["Arrivals", Posterior]:
        """The same with the nodes of this set, whose table is then made once."""
        fitted, rows = self._fitted(data)
        return fitted, fitted.nodes_of(rows, data)

    def _fitted(self, data: EvaluationSet) -> tuple["Arrivals", Rows]:
        ages = ages_of(data)
        _check_unit(ages)
        fit_data = FitData.of(data)
        _check_classes(fit_data, ages)
        calibrator = fit_data.logistic_calibrator(self.calibrator)
        grid = grid_of(data, ages, calibrator)
        rows = grid.rows(data, fit_data.table.place)
        grid, likelihood, mode = _with_days(grid, _likelihood(grid, rows, ages, data, fit_data.credit))
        draws, turning = weighed_draws(likelihood, grid, mode, draws_for(self.n_nodes))
        above, below = likelihood.expected(draws, rows.X, rows.place, rows.decided, rows.missing - rows.decided)
        chosen = representatives(above, below, np.full(len(draws), 1.0 / len(draws)), self.n_nodes)
        return Arrivals(self, grid, likelihood, mode, draws, chosen, turning), rows

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        ages, count = ages_of(data), int(data.missing_counts.sum())
        known = "ages and arrival times" if ages.timed.any() else "ages"
        text = f"Assumed: labels come with time, and later rows get them as earlier ones did ({known} of rows)."
        if not count:
            return text
        share = missing_prevalence(data, nodes)
        return (
            f"{text} Of the {count:,} missing rows{of_weight(data)} {share.mean:.0%} ({share.low:.0%} to "
            f"{share.high:.0%}) are positive."
        )


def ages_of(data: EvaluationSet) -> Ages:
    """The ages of the cells of a set, which must have them."""
    if data.cells.ages is None:
        raise InputError(
            "age: none with these rows (LateLabels). Give age= to evaluate or when building the EvaluationSet, or "
            "scored_at= and as_of= for a table."
        )
    return data.cells.ages


def _check_unit(ages: Ages) -> None:
    """The grid of ages, which is the same for all data, tells enough of these apart; whole numbers it always does."""
    oldest = float(bin_start(ages.age.max() + 1))
    if ages.whole or oldest > _LEAST_SPAN * EDGES[0]:
        return
    unit, factor, advice = "", 1.0, "Choose a smaller unit."
    if ages.days:
        unit, factor, advice = " seconds", 86_400.0, "Give age= (and delay=) as numbers, such as seconds."
    raise InputError(
        f"age: all are below {oldest * factor:.3g}{unit}, and ages are told apart from {EDGES[0] * factor:.2g}{unit} "
        f"on, which is too coarse for them (LateLabels). {advice}"
    )


def _check_classes(fit_data: FitData, ages: Ages) -> None:
    """Both classes have a label: ages tell when labels come, and of a class without any nothing is known."""
    positives, negatives = fit_data.label_counts()
    if positives and negatives:
        return
    if positives:
        raise InputError(
            f"y_true: all {positives:,} labels are positive, and when negatives come no age can tell (LateLabels). If "
            "only positives ever come, say maturity=: the age from which a row without a label is negative. If it was "
            f"given, no row is that old (all are below {bin_start(ages.age.max() + 1):.3g}): give older rows too."
        )
    found = f"all {negatives:,} labels are negative" if negatives else "no labelled row"
    raise InputError(
        f"y_true: {found}, so that ages cannot tell when labels come (LateLabels). Leave age and scored_at out, and "
        "give reference=(labels, scores) of fully labelled rows."
    )


def _likelihood(grid: Grid, rows: Rows, ages: Ages, data: EvaluationSet, credit: float) -> ArrivalLikelihood:
    zone = grid.zone_of(data.cells.score)
    counts = arrival_counts(grid, ages, data, zone, grid.zones)
    at_age = np.bincount(grid.bin_of(ages.age), data.cells.total, grid.bins).astype(np.float64)
    if _by_calendar(grid, counts, at_age):
        counts = arrival_counts(grid, ages.untimed(), data, zone, grid.zones)
    prior_mean, prior_precision = prior(grid, usual())
    return ArrivalLikelihood(
        rows.X,
        rows.place,
        rows.positives,
        rows.negatives,
        rows.missing,
        **counts,
        passed=grid.passed_by_class,
        prior_mean=prior_mean,
        prior_precision=prior_precision,
        credit=credit,
    )


def arrival_counts(grid: Grid, ages: Ages, data: EvaluationSet, zone: IntArray, zones: int) -> dict[str, FloatArray]:
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


def _by_calendar(grid: Grid, counts: dict[str, FloatArray], rows: FloatArray) -> bool:
    """Whether labels come on certain days (a weekly file) so that delays of one row say little about those of others.

    Rows of a bin then have far more labels from within it (the file came today) or far fewer (it comes tomorrow) than
    older rows got in it, of which they have passed a share. One bin of one class may differ: many labels of a class may
    come at one age, which is no day of the calendar.
    """
    own, full = (counts[name].sum(axis=1) for name in ("own", "full"))
    older = rows[::-1].cumsum()[::-1] - rows
    some = older > 0.0
    if not some.any():
        return False
    per_bin, came = (grid.passed * rows * full)[:, some] / older[some], own[:, some]
    at = np.argmax(np.abs(came - per_bin))
    expected, found = (float(np.delete(part, at).sum()) for part in (per_bin, came))
    differs = abs(found - expected) > _CLEARLY * np.sqrt(found + expected)
    return bool(differs and abs(np.log((found + 1.0) / (expected + 1.0))) > np.log(_MUCH))


def _with_days(grid: Grid, likelihood: ArrivalLikelihood) -> tuple[Grid, ArrivalLikelihood, FloatArray]:
    """Both with days on which labels of a class come at once, where rows around such a day clearly show it; the mode.

    A hazard that only walks from bin to bin would rise long before such a day, and rows would lie in the middle of
    the bin that it is in.
    """
    mode = _mode_of(likelihood)
    for _ in range(_MOST_DAYS):
        slope, square = likelihood.passed_slopes(mode)
        scores = np.abs(slope) / np.sqrt(np.maximum(square, 1.0))
        class_, bin_ = np.unravel_index(int(np.argmax(scores)), scores.shape)
        if scores[class_, bin_] < _DAY_CLEAR:
            break
        near = set(range(max(0, int(bin_) - 1), min(grid.bins, int(bin_) + 2))) - {day.bin_ for day in grid.days}
        found = [_with_day(grid, likelihood, mode, int(class_), place) for place in sorted(near)]
        if not found:
            break
        _, grid, likelihood = min(found, key=lambda one: one[0])
        mode = posterior_mode(likelihood.expand, mode)[0]
    return grid, likelihood, mode


def _mode_of(likelihood: ArrivalLikelihood) -> FloatArray:
    """The mode; far from it, where most steps are taken, a coarse table of many rows will do."""
    start = likelihood.prior_mean
    if likelihood.place.size > _MANY_ROWS:
        start = posterior_mode(likelihood.coarse(_NEIGHBOURS).expand, start)[0]
    return posterior_mode(likelihood.expand, start)[0]


def _with_day(
    grid: Grid, likelihood: ArrivalLikelihood, start: FloatArray, class_: int, bin_: int
) -> tuple[float, Grid, ArrivalLikelihood]:
    """Both with one day more in a bin, where in it the posterior is highest, and minus its height."""
    from scipy.optimize import minimize_scalar  # takes its time, and is hardly ever needed

    def of(share: float) -> tuple[float, Grid, ArrivalLikelihood]:
        own = replace(grid, days=(*grid.days, Day(class_, bin_, share)))
        precision = prior(own, usual())[1]
        with_day = replace(likelihood, passed=own.passed_by_class, prior_precision=precision)
        return -with_day.expand(posterior_mode(with_day.expand, start)[0]).value, own, with_day

    found = minimize_scalar(lambda share: of(share)[0], bounds=_DAY_ENDS, method="bounded", options={"xatol": 0.04})
    return of(float(found.x))


@dataclass(frozen=True, eq=False)
class Arrivals(LabelModel):
    """When labels come, as learnt from the rows of one set: a label model for that set and for parts of it."""

    model: LateLabels
    grid: Grid
    likelihood: ArrivalLikelihood
    mode: FloatArray
    draws: FloatArray
    chosen: IntArray
    # How likely it is that the share of positives at a score turns quickly with the time of scoring.
    turning: float

    def rows(self, data: EvaluationSet) -> Rows:
        """The table of a set by score, zone and age."""
        return self.grid.rows(data)

    def nodes(self, data: EvaluationSet) -> Posterior:
        return self.nodes_of(self.rows(data), data)

    def nodes_of(self, rows: Rows, data: EvaluationSet) -> Posterior:
        """The nodes of a set, given its table."""
        n = self.chosen.size
        p = self.likelihood.share(self.draws[self.chosen], rows.X, rows.place)
        return Posterior(np.full(n, 1.0 / n), p, bucket=rows.of_cell[data.missing_cells])

    def finer(self, n_draws: int) -> "Arrivals":
        """The same with so many draws, all of which are nodes: for sums over labels that no few nodes would hold."""
        draws = weighed_draws(self.likelihood, self.grid, self.mode, n_draws).parameters
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

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        return self.model.describe(data, nodes)
