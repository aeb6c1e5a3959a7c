"""ByLabel and ByScoreAndLabel: what the scores of missing rows, and reference rows, say about their labels."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit, logit, logsumexp
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics import CalibrationWarning, EvaluationSet, InputError
from darkmetrics.calibrators import Beta, Platt
from darkmetrics.missing import ByLabel, ByScore, ByScoreAndLabel, Unknown
from darkmetrics.missingness import score_table as score_table_module

NAN = float("nan")


def rows(seed, n, gone_positive, gone_negative, power=1.3):
    rng = np.random.default_rng(seed)
    s = np.clip(rng.beta(1.0, 2.0, n), 1e-4, 1.0 - 1e-4)
    y = (rng.random(n) < s**power).astype(float)
    missing = rng.random(n) < np.where(y == 1.0, gone_positive, gone_negative)
    return y, s, missing


def shares(model, data):
    """Share of positives among the missing rows, at each node."""
    return model.posterior(data).on_all_cells.probability @ data.missing_counts / data.n_missing


@pytest.mark.parametrize("seed", range(3))
def test_prevalence_of_missing_rows_has_the_posterior_of_a_grid(seed):
    """With many labels the curve is known, and the one-dimensional likelihood of the mathematics page remains."""
    y, s, missing = rows(seed, 20_000, 0.08, 0.02)
    data = EvaluationSet(np.where(missing, NAN, y), s)
    X = np.column_stack([np.log(s), -np.log1p(-s)])
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[~missing], y[~missing])
    p, pi = fit.predict_proba(X[missing])[:, 1], y[~missing].mean()
    eta = np.linspace(0.002, 0.998, 999)
    log_weight = np.array([np.log(e * p / pi + (1 - e) * (1 - p) / (1 - pi)).sum() for e in eta])
    # logit(eta) - logit(pi) ~ Cauchy(0, 2), as a density of eta
    log_weight += stats.cauchy.logpdf(logit(eta) - logit(pi), 0.0, 2.0) - np.log(eta * (1 - eta))
    weight = np.exp(log_weight - logsumexp(log_weight))
    share = np.array([expit(logit(p) + logit(e) - logit(pi)).mean() for e in eta])
    mean = weight @ share
    sd = np.sqrt(weight @ (share - mean) ** 2)
    found = shares(ByLabel(), data)
    # The curve, known to about a tenth of what is unknown about eta, adds a little spread of its own.
    assert found.mean() == pytest.approx(mean, abs=0.15 * sd)
    assert found.std() == pytest.approx(sd, rel=0.15)
    # The control: taking missing rows for labeled ones is many standard deviations off.
    assert abs(shares(ByScore(), data).mean() - mean) > 5.0 * sd


def test_the_shift_is_the_difference_of_log_odds():
    y, s, missing = rows(0, 20_000, 0.3, 0.1)
    posterior = ByLabel().posterior(EvaluationSet(np.where(missing, NAN, y), s))
    truth = logit(0.3) - logit(0.1)
    assert posterior.shift is not None
    assert posterior.shift.mean() == pytest.approx(truth, abs=3.0 * posterior.shift.std())
    assert posterior.shift.std() < 0.2


@pytest.mark.parametrize("word", ["beta", "platt"])
def test_words_and_objects_name_the_same_calibrator(word):
    y, s, missing = rows(0, 500, 0.4, 0.2)
    data = EvaluationSet(np.where(missing, NAN, y), s)
    given = {"beta": Beta, "platt": Platt}[word]()
    assert shares(ByLabel(word), data).tolist() == shares(ByLabel(given), data).tolist()
    assert vars(given) == {"prior_sd": 1.0}


@pytest.mark.parametrize("calibrator", ["isotonic", "scaling_binning", Beta(prior_sd=None)])
def test_a_calibrator_without_a_likelihood_is_refused(calibrator):
    y, s, missing = rows(0, 100, 0.4, 0.2)
    for model in (ByLabel(calibrator), ByScoreAndLabel(dm.missing.Reference(y, s), calibrator)):
        with pytest.raises(
            InputError,
            match=r"calibrator: .* must be 'flexible', 'beta' or 'platt', or one of their objects with its prior",
        ):
            model.posterior(EvaluationSet(np.where(missing, NAN, y), s))


@pytest.mark.parametrize("prior_scale", [0.0, 1e-200, 1e200, -1.0, NAN, float("inf"), "2", None, True])
def test_a_bad_prior_is_refused(prior_scale):
    with pytest.raises(InputError, match=r"prior_scale: .* must be a positive number"):
        ByLabel(prior_scale=prior_scale)


def test_a_narrow_prior_is_calibrated():
    y, s, missing = rows(0, 2000, 0.5, 0.1)
    data = EvaluationSet(np.where(missing, NAN, y), s)
    # No difference between the classes is allowed for, and then labels are missing at random.
    stiff = shares(ByLabel(prior_scale=1e-4), data)
    assert stiff.mean() == pytest.approx(shares(ByScore(), data).mean(), abs=0.01)


@pytest.mark.parametrize("n", [60, 600])
def test_scores_that_say_nothing_leave_a_wide_open_share(n):
    """Constant scores: a ridge along which theta and c follow d. A grid along it has the share's mean and spread."""
    y = np.concatenate([np.ones(n // 6), np.zeros(n // 3), np.full(n // 2, NAN)])
    positives, negatives, gone = n // 6, n // 3, n // 2
    # The log odds of labeled rows, the log of the odds of being missing, and d; the three steps below add to one of
    # them a function of the others, which changes no volume.
    d = np.concatenate([-np.geomspace(100.0, 0.05, 120), np.geomspace(0.05, 100.0, 120)])
    grid = np.meshgrid(np.linspace(-4.0, 3.0, 81), np.linspace(-2.0, 2.0, 81), d, indexing="ij")
    odds, level, d = (axis.ravel() for axis in grid)
    width = np.tile(np.gradient(grid[2][0, 0]), 81 * 81)
    down = level - np.logaddexp(np.log(1 / 3) + d, np.log(2 / 3))
    up = down + d
    log_odds = odds - log_expit(-up) + log_expit(-down)
    x = np.array([1.0, np.log(0.4), -np.log(0.6)])  # the columns of beta calibration at a score of 0.4
    log_weight = np.log(width) + stats.cauchy.logpdf(d, 0.0, 2.0) + stats.norm.logpdf((up + down) / 2.0, 0.0, 3.0)
    log_weight += stats.norm.logpdf(log_odds, x @ [0.0, 1.0, 1.0], np.sqrt(x**2 @ np.array([9.0, 1.0, 1.0])))
    log_weight += positives * (log_expit(log_odds) + log_expit(-up)) + negatives * (
        log_expit(-log_odds) + log_expit(-down)
    )
    log_weight += gone * np.logaddexp(log_expit(log_odds) + log_expit(up), log_expit(-log_odds) + log_expit(down))
    weight = np.exp(log_weight - logsumexp(log_weight))
    share = expit(log_odds + log_expit(up) - log_expit(down))
    mean = weight @ share
    sd = np.sqrt(weight @ (share - mean) ** 2)
    assert sd > 0.3
    found = shares(ByLabel(), EvaluationSet(y, np.full(y.size, 0.4)))
    # The proposal is Gaussian and misses the far tails of a Cauchy prior: up to 15% of the spread.
    assert found.mean() == pytest.approx(mean, abs=0.15 * sd)
    assert found.std() == pytest.approx(sd, rel=0.15)


def test_reference_rows_say_how_many_positives_are_left_over():
    # Scores that hardly tell the classes apart, so that only the count of left-over positives can tell.
    rng = np.random.default_rng(1)
    n = 8000
    s = rng.uniform(0.25, 0.35, n)
    y = (rng.random(n) < s).astype(float)
    missing = rng.random(n) < np.where(y == 1.0, 0.6, 0.2)
    data = EvaluationSet(np.where(missing, NAN, y)[4000:], s[4000:])
    alone = shares(ByLabel(), data)
    helped = shares(ByLabel(reference=dm.missing.Reference(y[:4000], s[:4000])), data)
    truth = y[4000:][missing[4000:]].mean()
    assert helped.std() < 0.35 * alone.std()
    assert helped.mean() == pytest.approx(truth, abs=3.0 * helped.std())


@pytest.mark.parametrize("model", ["by_label", "by_score_and_label"])
def test_buckets_change_little(model, monkeypatch):
    y, s, missing = rows(2, 6000, 0.5, 0.3)
    y_true = np.where(missing, NAN, y)
    data = EvaluationSet(y_true[:5000], s[:5000])
    made = ByLabel() if model == "by_label" else ByScoreAndLabel(dm.missing.Reference(y[5000:], s[5000:]))
    binned = made.posterior(data)
    assert binned.probability.shape[1] <= 2048 < data.cells.score.size
    monkeypatch.setattr(score_table_module, "_BUCKETS", 10**9)
    exact = made.posterior(data)
    first, second = (posterior.on_all_cells.probability for posterior in (binned, exact))
    # Half a bucket, 1/1024 of a range of log odds of 18, moves a probability by 2e-3; the choice of the nodes may move
    # each curve by more, their mean by a little. Rows next to an eighth's edge may change sides: fewer than 1 in 100.
    assert np.quantile(np.abs(first.mean(axis=0) - second.mean(axis=0)), 0.99) < 0.01
    spread = float((second @ data.missing_counts / data.n_missing).std())
    means = [float((p @ data.missing_counts / data.n_missing).mean()) for p in (first, second)]
    assert means[0] == pytest.approx(means[1], abs=0.1 * spread)


# --------------------------------------------------------------------------------------------------------- selection


def test_selection_needs_reference_rows():
    with pytest.raises(InputError, match=r"reference: missing\. Effects of score and label can only be separated"):
        ByScoreAndLabel()


@pytest.mark.parametrize("kind", ["random", "by score", "by label", "both", "positives only"])
def test_selection_finds_the_share_of_positives_whatever_the_mechanism(kind):
    off = []
    for seed in range(6):
        y, s, _ = rows(seed, 3000, 0.0, 0.0)
        rng = np.random.default_rng([seed, 1])
        x = logit(s)
        gone = {
            "random": np.full(3000, 0.3),
            "by score": expit(-1.0 + 0.7 * x),
            "by label": np.where(y == 1.0, 0.6, 0.2),
            "both": expit(-1.0 + 0.5 * x + 1.5 * y),
            "positives only": np.where(y == 1.0, 0.5, 1.0),
        }[kind]
        missing = rng.random(3000) < gone
        data = EvaluationSet(np.where(missing, NAN, y)[1000:], s[1000:])
        found = shares(ByScoreAndLabel(dm.missing.Reference(y[:1000], s[:1000])), data)
        truth = y[1000:][missing[1000:]].mean()
        # What the labels are, were the probabilities known, comes on top of the spread of the nodes.
        noise = np.sqrt(found.mean() * (1.0 - found.mean()) / data.n_missing)
        off.append((truth - found.mean()) / np.hypot(found.std(), noise))
    # Six standard errors of size one: their mean beyond 1.6 has a probability of 1e-4, one beyond 4 less.
    assert abs(np.mean(off)) < 1.6
    assert np.abs(off).max() < 4.0


def test_calibrated_fails_the_same_test_by_label():
    y, s, missing = rows(0, 3000, 0.6, 0.2)
    found = shares(ByScore(), EvaluationSet(np.where(missing, NAN, y), s))
    noise = np.sqrt(found.mean() * (1.0 - found.mean()) / missing.sum())
    assert abs(y[missing].mean() - found.mean()) > 5.0 * np.hypot(found.std(), noise)


@pytest.mark.filterwarnings("ignore:The results contradict")
@pytest.mark.parametrize(("positives", "negatives"), [(0, 40), (3, 40), (40, 4)])
def test_few_reference_labels_of_a_class_are_warned_of(positives, negatives):
    y, s, missing = rows(0, 300, 0.4, 0.2)
    labels = np.repeat([1.0, 0.0], [positives, negatives])
    scores = np.random.default_rng(0).uniform(0.1, 0.9, labels.size)
    text = f"reference: {positives} positive and {negatives} negative labels to learn from \\(ByScoreAndLabel\\)"
    with pytest.warns(CalibrationWarning, match=text) as caught:
        dm.evaluate(
            np.where(missing, NAN, y),
            s,
            missingness=dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(labels, scores)),
            metrics="f1",
        )
    # Labels that do not depend on the score contradict the rows as well.
    (few,) = (warning for warning in caught if "The results contradict" not in str(warning.message))
    assert few.filename == __file__


def test_selection_says_that_it_assumes_no_drift():
    y, s, missing = rows(0, 300, 0.4, 0.2)
    result = dm.evaluate(
        np.where(missing, NAN, y),
        s,
        missingness=dm.missing.Unknown(reference=dm.missing.Reference(*rows(1, 300, 0.0, 0.0)[:2])),
        metrics="f1",
    )
    assert result.assumption.startswith("Assumed: nothing about why labels are missing")
    assert result.assumption.endswith("no drift since.")
    assert result.reference is not None


def test_reference_rows_in_the_model_reach_the_diagnosis():
    y, s, missing = rows(0, 300, 0.4, 0.2)
    reference = dm.missing.Reference(*rows(1, 300, 0.0, 0.0)[:2])
    result = dm.evaluate(np.where(missing, NAN, y), s, missingness=ByScoreAndLabel(reference), metrics="f1")
    assert result.reference is not None
    assert isinstance(result.reference, dm.EvaluationSet)
    assert result.reference.n_rows == 300


@pytest.mark.filterwarnings("ignore:Scores range")
@pytest.mark.parametrize("model", [Unknown, ByScoreAndLabel, ByLabel, ByScore])
@pytest.mark.parametrize("reverse", [False, True])
def test_reference_scores_on_another_scale_are_refused(model, reverse):
    y, s, missing = rows(0, 300, 0.4, 0.2)
    labels, scores, _ = rows(1, 300, 0.0, 0.0)
    score, other = (logit(s), scores) if reverse else (s, logit(scores))
    with pytest.raises(InputError, match=r"reference: scores from .* but y_score is from .* same scale") as error:
        dm.evaluate(np.where(missing, NAN, y), score, missingness=model(reference=dm.missing.Reference(labels, other)))
    assert "calibrator='platt'" in str(error.value)


def test_what_that_message_advises_works():
    y, s, missing = rows(0, 300, 0.4, 0.2)
    labels, scores, _ = rows(1, 300, 0.0, 0.0)
    narrow = np.clip(logit(s), 0.0, 1.0)  # margins that happen to lie in [0, 1]
    model = ByScoreAndLabel(dm.missing.Reference(labels, logit(scores)), calibrator="platt")
    dm.evaluate(np.where(missing, NAN, y), narrow, missingness=model, metrics="f1")


def test_margins_on_both_sides_are_fine():
    y, s, missing = rows(0, 2000, 0.4, 0.2)
    labels, scores, _ = rows(1, 1000, 0.0, 0.0)
    data, margins = (EvaluationSet(np.where(missing, NAN, y), x) for x in (s, 4.0 * logit(s)))
    plain = shares(ByScoreAndLabel(dm.missing.Reference(labels, scores), "platt"), data)
    scaled = shares(ByScoreAndLabel(dm.missing.Reference(labels, 4.0 * logit(scores))), margins)
    # The same regression but for a wider prior.
    assert plain.mean() == pytest.approx(scaled.mean(), abs=0.5 * plain.std())
