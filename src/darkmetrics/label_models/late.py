"""LateLabels: labels come with time, and the ages of rows say which ones are still to come."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy  # its parts are loaded when they are first used
from scipy.special import softmax

from darkmetrics._kernels.age_grid import EDGES
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.posterior.arrival import ArrivalLikelihood
from darkmetrics._kernels.posterior.draws import Draws, gaussian_posterior, posterior_mode, representatives
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.ages import Ages, are_ages, bin_start, read_ages
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.label_models.base import LabelModel, missing_prevalence, of_weight
from darkmetrics.label_models.fitting import N_NODES, Material, check_n_nodes, draws_for
from darkmetrics.label_models.late_grid import Day, Grid, Rows, grid_of
from darkmetrics.nodes import Nodes

# Prior of the log odds of a hazard: labels come evenly in time, on average after this share of the oldest age, so that
# wide bins have more of them; how far all hazards may be off that, and how far from bin to bin. (The same hazard for
# every bin would say that ever fewer come: what is late is then hard to tell from what never comes, and where one bin
# holds most of the time, nearly all labels have to come in it against the prior.)
_MEAN_DELAY, _LEVEL_SD, _STEP = 0.25, 2.5, 1.0
# Prior of the log odds that a label never comes; where only positives come, those that never do are none by definition.
_NEVER, _NEVER_SD, _HARDLY_EVER = -3.0, 2.0, -12.0
# Standard deviations that the data weigh against each other: of what scores add to that, and of how far the log odds of
# a positive at one score wander over all times of scoring, and rise or fall steadily. Mostly they do neither, and
# allowing for it costs width. Without a trend one of 0.6 is too much for the first walk and too little for the last, so
# that it is taken for none; and where a portfolio changes within weeks, a last walk of 1.5 is too slow.
_ZONES, _DRIFTS = (0.1, 0.7), ((0.15, 0.0), (0.15, 0.7), (3.0, 0.0))
# Two of these at once are left out where each alone makes it clear that they would hardly get a draw.
_RARELY = 0.01
# The oldest age is at least so many times the first step of the grid, as two months of whole days are.
_LEAST_SPAN = 64.0
# Rows of a table from which on the mode is first looked for with so many neighbours as one.
_MANY_ROWS, _NEIGHBOURS = 4096, 16
# Labels of rows' own bins that differ by so many standard deviations, and by such a factor, from what older rows had:
# then labels come by the calendar.
_CLEARLY, _MUCH = 3.0, 1.25
# Labels of a class that come on one day of a bin (all good customers on day 90): how clearly rows of that bin must show
# it, by standard scores, how many bins may have such a day, how much of their rows may have passed it, and how far the
# log odds of the hazard may jump there.
_STEP_CLEAR, _STEPS, _STEP_ENDS, _STEP_JUMP = 3.5, 2, (0.01, 0.99), 6.0


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

    def nodes(self, data: EvaluationSet) -> Nodes:
        return self.learn(data)[1]

    def fit(self, data: EvaluationSet) -> "Arrivals":
        """What the rows of a set say about when labels come, for the rows of this set or of a part of it."""
        return self._fitted(data)[0]

    def learn(self, data: EvaluationSet) -> tuple["Arrivals", Nodes]:
        """The same with the nodes of this set, whose table is then made once."""
        fitted, rows = self._fitted(data)
        return fitted, fitted.nodes_of(rows, data)

    def _fitted(self, data: EvaluationSet) -> tuple["Arrivals", Rows]:
        ages = ages_of(data)
        _check_unit(ages)
        material = Material.of(data)
        _check_classes(material, ages)
        calibrator = material.logistic_calibrator(self.calibrator)
        grid = grid_of(data, ages, calibrator)
        rows = grid.rows(data, material.table.place)
        grid, likelihood, mode = _with_steps(grid, _likelihood(grid, rows, ages, data, material.credit))
        draws = _draws(likelihood, grid, mode, draws_for(self.n_nodes))
        above, below = likelihood.expected(draws, rows.X, rows.place, rows.decided, rows.missing - rows.decided)
        chosen = representatives(above, below, np.full(len(draws), 1.0 / len(draws)), self.n_nodes)
        return Arrivals(self, grid, likelihood, mode, draws, chosen), rows

    def describe(self, data: EvaluationSet, nodes: Nodes) -> str:
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
    stratum = data.cells.stratum
    if not are_ages(stratum):
        raise InputError(
            "age: none with these rows (LateLabels). Give age= to evaluate or when building the EvaluationSet, or "
            "scored_at= and as_of= for a table."
        )
    assert stratum is not None
    return read_ages(stratum)


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


def _check_classes(material: Material, ages: Ages) -> None:
    """Both classes have a label: ages tell when labels come, and of a class without any nothing is known."""
    positives, negatives = material.label_counts()
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
    prior_mean, prior_precision = _prior(grid, _ZONES[0], _DRIFTS[0])
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


def _with_steps(grid: Grid, likelihood: ArrivalLikelihood) -> tuple[Grid, ArrivalLikelihood, FloatArray]:
    """Both with days on which labels of a class come at once, where rows around such a day clearly show it; the mode.

    A hazard that only walks from bin to bin would rise long before such a day, and rows would lie in the middle of
    the bin that it is in.
    """
    mode = _mode_of(likelihood)
    for _ in range(_STEPS):
        slope, square = likelihood.passed_slopes(mode)
        scores = np.abs(slope) / np.sqrt(np.maximum(square, 1.0))
        class_, bin_ = np.unravel_index(int(np.argmax(scores)), scores.shape)
        if scores[class_, bin_] < _STEP_CLEAR:
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
        precision = _prior(own, _ZONES[0], _DRIFTS[0])[1]
        with_day = replace(likelihood, passed=own.passed_by_class, prior_precision=precision)
        return -with_day.expand(posterior_mode(with_day.expand, start)[0]).value, own, with_day

    found = minimize_scalar(lambda share: of(share)[0], bounds=_STEP_ENDS, method="bounded", options={"xatol": 0.04})
    return of(float(found.x))


def _prior(grid: Grid, zone: float, drift: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Mean and precision: the calibrator's own, drift, a random walk of log hazards for each class, never, zones."""
    bins, moves = grid.bins, grid.knots.size - 1
    calibrator = grid.calibrator
    curve = calibrator.prior_scale_
    steps = np.tile(np.append(_LEVEL_SD, np.full(bins, _STEP)), (2, 1))
    for day in grid.days:
        steps[day.class_, day.bin_ : day.bin_ + 2] = _STEP_JUMP
    walks = [_walk(own[:bins]) for own in steps]
    # The oldest knot is 0, and the steps to the others grow with the root of the time between them.
    wander, trend = drift
    times = -np.diff(grid.knots) / max(float(np.ptp(grid.knots)), 1e-300)
    path = _walk(wander * np.sqrt(times))
    paths = [_with_trend(path, trend * np.cumsum(times)), path]
    parts = [np.diag(curve**-2.0), *paths, *walks, np.eye(2) * _NEVER_SD**-2.0, np.eye(grid.zones - 1) * zone**-2.0]
    never = np.array([_HARDLY_EVER if grid.mature else _NEVER, _NEVER])
    even = np.log(np.expm1(np.diff(grid.edges) / (_MEAN_DELAY * grid.oldest)))
    mean = [calibrator.prior_mean_, np.zeros(2 * moves), even, even, never, np.zeros(grid.zones - 1)]
    return np.concatenate(mean), scipy.linalg.block_diag(*parts)


def _walk(steps: FloatArray) -> FloatArray:
    """Precision of a random walk that starts at its mean, with these standard deviations of steps."""
    moves = np.eye(steps.size) - np.eye(steps.size, k=-1)
    return np.asarray((moves.T * steps**-2.0) @ moves, dtype=np.float64)


def _with_trend(precision: FloatArray, trend: FloatArray) -> FloatArray:
    """The precision with a multiple of `trend` added to what it is of, which is standard normal."""
    pulled = precision @ trend
    return precision - np.outer(pulled, pulled) / (1.0 + float(trend @ pulled))


def _draws(likelihood: ArrivalLikelihood, grid: Grid, mode: FloatArray, size: int) -> FloatArray:
    """Draws of the parameters, as many from each prior as the evidence gives it weight."""
    drifts = len(_DRIFTS) if grid.knots.size > 1 else 1
    found: dict[tuple[int, int], Draws] = {}
    for place in sorted(product(range(len(_ZONES)), range(drifts)), key=min):  # those with one of the firsts come first
        if min(place) and _expected(found, place) < _RARELY:
            continue
        zone, drift = place
        own = replace(likelihood, prior_precision=_prior(grid, _ZONES[zone], _DRIFTS[drift])[1])
        near = found.get((0, drift))
        found[place] = gaussian_posterior(own, mode if near is None else near.parameters.mean(axis=0), size)
    evidence = np.array([draws.log_evidence for draws in found.values()])
    ends = np.rint(size * np.cumsum(softmax(evidence))).astype(np.int64)
    first = np.append(0, ends[:-1])
    return np.concatenate([draws.parameters[a:b] for draws, a, b in zip(found.values(), first, ends, strict=True)])


def _expected(found: dict[tuple[int, int], Draws], place: tuple[int, int]) -> float:
    """The weight that both settings at once would get, if what one adds to the evidence did not depend on the other."""
    alone = {at: draws.log_evidence for at, draws in found.items() if not min(at)}
    both = alone[place[0], 0] + alone[0, place[1]] - alone[0, 0]
    return float(softmax([both, *alone.values()])[0])


@dataclass(frozen=True, eq=False)
class Arrivals(LabelModel):
    """When labels come, as learnt from the rows of one set: a label model for that set and for parts of it."""

    model: LateLabels
    grid: Grid
    likelihood: ArrivalLikelihood
    mode: FloatArray
    draws: FloatArray
    chosen: IntArray

    def rows(self, data: EvaluationSet) -> Rows:
        """The table of a set by score, zone and age."""
        return self.grid.rows(data)

    def nodes(self, data: EvaluationSet) -> Nodes:
        return self.nodes_of(self.rows(data), data)

    def nodes_of(self, rows: Rows, data: EvaluationSet) -> Nodes:
        """The nodes of a set, given its table."""
        n = self.chosen.size
        p = self.likelihood.share(self.draws[self.chosen], rows.X, rows.place)
        return Nodes(np.full(n, 1.0 / n), p, bucket=rows.of_cell[data.missing_cells])

    def finer(self, n_draws: int) -> "Arrivals":
        """The same with so many draws, all of which are nodes: for sums over labels that no few nodes would hold."""
        draws = _draws(self.likelihood, self.grid, self.mode, n_draws)
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
