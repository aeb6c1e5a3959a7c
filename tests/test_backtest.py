"""Backtests: labels are hidden and read as stated, right laws are found right, and wrong ones are found out."""

import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

import darkmetrics as dm
from darkmetrics._kernels.hypothesis_tests import floors, w1_to_uniform


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n) ** 2
    return (rng.random(n) < score), score


@pytest.fixture(scope="module")
def by_label():
    y, score = rows(1500)
    return dm.backtest(
        y.astype(int),
        score,
        mask=dm.masks.ByLabel(0.2, prevalence=0.7),
        n_repeats=30,
        rng=3,
        missingness=["stated", "by_score"],
    )


# --------------------------------------------------------------------------------------------------------- the figures


def test_the_truth_is_the_metric_with_all_labels(by_label):
    y, score = rows(1500)
    assert by_label["stated", "recall"].truth == pytest.approx(sk.recall_score(y, score >= 0.5), rel=1e-12)
    assert by_label["stated", "roc_auc"].truth == pytest.approx(sk.roc_auc_score(y, score), rel=1e-12)


def test_a_label_model_that_is_told_the_mechanism_holds_and_one_that_assumes_chance_does_not(by_label):
    # 30 repeats of 90%: fewer than 21 once in two thousand.
    assert all(by_label["stated", name].coverage.value >= 0.7 for name in ("precision", "recall", "accuracy", "f1"))
    # The control: told nothing, and the prevalence of the missing rows is three times that of the others.
    assert by_label["by_score", "precision"].coverage.value < 0.3
    assert by_label["by_score", "precision"].w1.low > by_label["by_score", "precision"].w1_floor


def test_one_repeat_by_hand():
    y, score = rows(400)
    reference = dm.missing.Reference(*rows(200, seed=1))
    result = dm.backtest(
        y,
        score,
        mask=0.25,
        threshold=0.3,
        confidence_level=0.6,
        metrics="recall",
        n_repeats=1,
        rng=5,
        missingness=dm.missing.ByScore(reference=reference),
    )
    (rng,) = np.random.default_rng(5).spawn(1)
    partly = y.astype(float)
    partly[rng.choice(400, 100, replace=False)] = math.nan
    settings: dict[str, Any] = {"metrics": "recall", "threshold": 0.3}
    distribution = dm.evaluate(partly, score, missingness=dm.missing.ByScore(reference=reference), **settings)["recall"]
    assert distribution.mean() != dm.evaluate(partly, score, missingness="by_score", **settings)["recall"].mean()
    found = result["recall"]
    assert (found.centre[0], found.low[0], found.high[0]) == (distribution.mean(), *distribution.interval(0.6))
    truth = sk.recall_score(y, score >= 0.3)
    before, after = distribution.cdf(truth - 1e-9), distribution.cdf(truth)
    assert before < after
    assert found.pit[0] == pytest.approx(before + rng.random() * (after - before), rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "gaussian", "monte_carlo"])
def test_a_law_that_is_a_point_at_the_truth_has_a_uniform_pit(method):
    y, score = rows(40)
    nothing = dm.masks.ByScore(1e-9)
    result = dm.backtest(
        y, score, mask=nothing, methods=method, n_repeats=200, rng=0, missingness=dm.missing.Fixed(0.5)
    )
    # Nobody is decided positive: recall is 0 whatever the labels are.
    nobody = dm.backtest(
        y, np.full(40, 0.3), metrics="recall", methods=method, n_repeats=200, rng=0, missingness=dm.missing.Fixed(0.5)
    )
    for found in (*result.scores["Fixed"].values(), nobody["recall"]):
        assert np.array_equal(found.low, found.high)
        assert found.coverage.value == 1.0
        # Twice the mean is exceeded once in fifty times.
        assert found.w1.value < 2 * found.w1_floor


def test_right_laws_are_near_the_floor_on_rows_of_their_own_and_above_it_on_shared_rows():
    """The floor is for independent repeats, as the pages say."""

    def pit_values(seed, repeats):
        rng = np.random.default_rng(seed)
        chance = rng.random(300)
        y = rng.random(300) < chance
        known = {"known": dm.missing.Fixed(chance)}
        return dm.backtest(y, chance, mask=0.8, metrics="accuracy", n_repeats=repeats, rng=seed, missingness=known)[
            "accuracy"
        ].pit

    alone = np.sort([pit_values(seed, 1)[0] for seed in range(200)])
    # Of uniform values W1 is above 1.7 times its mean in one of twenty cases, above 2.2 in one of a hundred.
    assert w1_to_uniform(alone) < 2 * floors(200)[0]
    shared = [float(w1_to_uniform(np.sort(pit_values(seed, 50)))) for seed in range(10)]
    assert np.mean(shared) > 3 * floors(50)[0]


# --------------------------------------------------------------------------------------------------- labels and models


def test_names_of_the_labels_change_nothing():
    y, score = rows(300)
    reference_y, reference_score = rows(100, seed=1)
    settings: dict[str, Any] = {"metrics": "accuracy", "n_repeats": 3, "rng": 0}

    def found(names, **how):
        labels, reference = np.where(y, *names), (np.where(reference_y, *names), reference_score)
        record = dm.missing.ExponentialTilt(dm.missing.ByScore(reference=dm.missing.Reference(*reference)), delta=0.1)
        models: dict[str, Any] = {"rows": dm.missing.Reference(*reference), "record": record}
        return dm.backtest(labels, score, missingness=models, **settings, **how)

    plain = found((1, 0)).to_dict()
    assert plain["scores"]["rows"]["accuracy"]["coverage"] > 0.0
    assert found((0, 1), pos_label=0).to_dict() == plain
    assert found((2, 1), pos_label=2).to_dict() == plain
    assert found(("yes", "no"), pos_label="yes").to_dict() == plain


def test_rows_without_a_label_take_no_part():
    y, score = rows(300)
    prevalence = dm.missing.TrainingPrevalence()
    settings: dict[str, Any] = {"missingness": prevalence, "metrics": "accuracy", "n_repeats": 3, "rng": 0}
    known = np.arange(300) % 3 > 0
    complete = dm.backtest(y[known], score[known], **settings).to_dict()
    labels = [("yes" if label else "no") if seen else None for label, seen in zip(y, known, strict=True)]
    assert dm.backtest(labels, score, pos_label="yes", **settings).to_dict() == complete
    codes = np.where(known, y, -1)
    # Their scores do not matter either.
    assert dm.backtest(codes, np.where(known, score, np.nan), missing_label=-1, **settings).to_dict() == complete


def test_calibration_goes_to_those_who_learn():
    y, score = rows(300)
    settings: dict[str, Any] = {"metrics": "accuracy", "n_repeats": 2, "rng": 0, "mask": 0.5}
    both, alone = (
        dm.backtest(y, score, missingness=[dm.missing.ByScore(reference=reference), dm.missing.Fixed(0.5)], **settings)
        for reference in (dm.missing.Reference(*rows(1000, seed=1)), None)
    )
    assert both["Fixed", "accuracy"].to_dict() == alone["Fixed", "accuracy"].to_dict()
    assert both["ByScore", "accuracy"].width.value < alone["ByScore", "accuracy"].width.value


def test_every_label_model_is_tried_with_every_method():
    y, score = rows(300)
    result = dm.backtest(
        y,
        score,
        methods=["exact", "gaussian"],
        metrics="recall",
        n_repeats=2,
        rng=0,
        missingness={"a half": dm.missing.Fixed(0.5), "mine": dm.missing.TrainingPrevalence()},
    )
    assert list(result.scores) == ["a half, exact", "a half, gaussian", "mine, exact", "mine, gaussian"]


def test_stated_is_told_how_labels_are_hidden():
    y, score = rows(300)
    for mechanism, word in (
        (dm.masks.ByScore(0.3), "by_score"),
        (dm.masks.ByLabel(0.3, prevalence=0.5), "by_label"),
    ):
        result = dm.backtest(y, score, mask=mechanism, metrics="f1", n_repeats=2, rng=0, missingness=["stated", word])
        assert result["stated", "f1"].to_dict() == result[word, "f1"].to_dict()


# ------------------------------------------------------------------------------------------------ processes and chance


def test_any_number_of_processes_gives_the_same_numbers():
    y, score = rows(300)
    one, two = (
        dm.backtest(
            y,
            score,
            metrics=["recall", "roc_auc"],
            methods="monte_carlo",
            missingness=dm.missing.Reference(*rows(100, seed=1)),
            n_repeats=6,
            rng=1,
            n_jobs=jobs,
        )
        for jobs in (1, 2)
    )
    assert one.to_dict() == two.to_dict()
    other = dm.backtest(y, score, metrics=["recall", "roc_auc"], methods="monte_carlo", n_repeats=6, rng=2)
    assert other.to_dict() != one.to_dict()


def test_minus_one_stands_for_all_cores(monkeypatch):
    # One core, so that no process is started.
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    y, score = rows(100)
    settings: dict[str, Any] = {"missingness": dm.missing.Fixed(0.5), "metrics": "f1", "n_repeats": 2, "rng": 0}
    all_cores = dm.backtest(y, score, n_jobs=-1, **settings)
    assert all_cores.to_dict() == dm.backtest(y, score, **settings).to_dict()


def test_what_cannot_be_sent_to_other_processes_is_said():
    y, score = rows(100)
    own = {"mine": lambda labels, scores: float(labels.mean())}
    with pytest.raises(dm.InputError, match=r"n_jobs: a metric, label model or mechanism cannot be sent"):
        dm.backtest(y, score, metrics=own, n_repeats=2, n_jobs=2, missingness=dm.missing.Fixed(0.5))


def test_generators_that_cannot_spawn_are_drawn_from():
    y, score = rows(100)
    settings: dict[str, Any] = {"missingness": dm.missing.Fixed(0.5), "metrics": "f1", "n_repeats": 3}
    first, again, other = (
        dm.backtest(y, score, rng=np.random.Generator(np.random.RandomState(seed)._bit_generator), **settings).to_dict()
        for seed in (1, 1, 2)
    )
    assert first == again != other


# ------------------------------------------------------------------------------------------------- what goes by halves


def test_fewer_hidden_rows_than_asked_for_are_told(by_label):
    y, score = rows(300)
    result = dm.backtest(
        y, score, mask=dm.masks.ByLabel(0.5, prevalence=0.9), n_repeats=2, rng=0, missingness=dm.missing.Fixed(0.5)
    )
    assert "instead of 150 rows are hidden" in str(result)
    assert by_label.notes == ()


def test_a_metric_that_is_never_defined_leaves_the_others():
    y, score = rows(600)
    # Nobody is decided positive: markedness is 0/0, and has no value that stands for it.
    result = dm.backtest(
        y,
        score,
        threshold=2,
        metrics=["markedness", "accuracy"],
        n_repeats=4,
        rng=0,
        missingness=dm.missing.TrainingPrevalence(),
    )
    empty = result["markedness"]
    assert (empty.n, empty.n_failed, result["accuracy"].n) == (0, 4, 4)
    for figure in (empty.w1, empty.ks, empty.mae, empty.rmse, empty.coverage, empty.width):
        assert all(map(math.isnan, figure))
    assert math.isnan(empty.w1_floor)
    assert result.notes == ("markedness is undefined with all labels: there is nothing to compare with.",)
    lines = [line.split() for line in str(result).splitlines() if " markedness " in line]
    assert [cell for line in lines for cell in line[2:]] == [*"-----", "4"]
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["scores"]["TrainingPrevalence"]["markedness"]["w1"] is None
    assert result.to_frame("pandas")["coverage"].isna().tolist() == [True, False]
    assert "markedness" in result._repr_html_()


def test_a_setup_that_fails_leaves_the_others_and_says_why():
    y, score = rows(200)
    metric = dm.metrics.CallableMetric(name="hits", function=lambda y, s: float(y @ (s > 0.3)), better="higher")
    result = dm.backtest(
        y,
        score,
        metrics=["recall", metric],
        methods=["exact", "monte_carlo"],
        n_repeats=3,
        rng=0,
        missingness=dm.missing.Fixed(0.5),
    )
    assert [result["Fixed, exact", "recall"].n, result["Fixed, exact", "recall"].n_failed] == [0, 3]
    assert result["Fixed, monte_carlo", "recall"].n == 3
    (note,) = result.notes
    assert note.startswith("'Fixed, exact' gave no law in 3 of 3 repeats. ")
    assert "hits" in note


def test_repeats_that_fail_are_counted_and_the_first_reason_is_told():
    # Two positives, half of them hidden: sometimes none is left to learn from.
    y, score = np.arange(40) < 2, np.linspace(1, 0, 40)
    result = dm.backtest(y, score, mask=0.5, metrics="accuracy", n_repeats=40, rng=0, missingness="by_label")
    found = result["accuracy"]
    assert 0 < found.n_failed < 40
    assert found.n == 40 - found.n_failed == found.pit.size
    assert result.to_dict()["scores"]["by_label"]["accuracy"]["failed"] == found.n_failed
    assert result.notes[0].startswith(f"'by_label' gave no law in {found.n_failed} of 40 repeats. y_true: ")


def test_an_error_comes_only_if_nothing_is_left():
    y, score = rows(40)
    with pytest.raises(dm.InputError, match=r"missingness: no law of any metric in any of 2 repeats\. 'Fixed' gave no"):
        dm.backtest(y, score, n_repeats=2, missingness=dm.missing.Fixed())
    with pytest.raises(dm.InputError, match=r"in 1 repeat\. markedness is undefined"):
        dm.backtest(y, score, threshold=2, metrics="markedness", n_repeats=1, missingness=dm.missing.Fixed(0.5))


# ----------------------------------------------------------------------------------------------------- words and names


def test_results_read_as_words_and_as_numbers(by_label):
    text = str(by_label)
    assert "1,500 labeled rows, labels hidden 30 times: ByLabel(fraction=0.2, prevalence=0.7)" in text
    assert "Repeats share rows" in text
    assert repr(by_label) == "<Backtest of 2 setups on 1,500 rows, 30 repeats>"
    assert by_label._repr_html_().count("<tr>") == 11
    plain = json.loads(json.dumps(by_label.to_dict(), allow_nan=False))
    assert plain["scores"]["stated"]["f1"]["coverage"] == by_label["stated", "f1"].coverage.value
    frame = by_label.to_frame("pandas")
    assert len(frame) == 10
    y, score = rows(40)
    once = dm.backtest(y, score, metrics="f1", n_repeats=1, rng=0, missingness=dm.missing.Fixed(0.5))
    assert "labels hidden once: MCAR(fraction=0.3)" in str(once)
    assert repr(once) == "<Backtest of 1 setup on 40 rows, 1 repeat>"
