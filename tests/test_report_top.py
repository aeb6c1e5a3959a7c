"""What a reader of a report sees first: assumption, date, verdicts, counts, area; and what he takes away."""

import datetime as dt
import html
import pickle
import re
import shutil
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics.report.exports import csv_text
from darkmetrics.report.reproduce import call_of, data_hash, date_of

Y_TRUE = [1, 0, None, 1, None, 0, 1, 0, None, 1]
Y_SCORE = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1, 0.55, 0.65]
P = [0.7, 0.2, 0.5]


def small(**said: Any):
    return dm.evaluate(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed(P), metrics=["precision", "recall"], **said)


def learned(metrics: Any, n=80):
    rng = np.random.default_rng(4)
    y_score = rng.random(n)
    y_true = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < y_score)
    return dm.evaluate(y_true, y_score, missingness="by_score", metrics=metrics)


def test_the_confusion_matrix_equals_brute_force():
    found = dm.report.summarize(small())["confusion"]
    decided = np.array(Y_SCORE) >= 0.5
    counts: dict[str, list[tuple[float, float]]] = {name: [] for name in ("tp", "fp", "fn", "tn")}
    for labels in product((0, 1), repeat=3):
        chance = float(np.prod(np.where(labels, P, 1.0 - np.array(P))))
        left = iter(labels)
        y = np.array([next(left) if label is None else label for label in Y_TRUE])
        for name, own in (
            ("tp", decided & (y == 1)),
            ("fp", decided & (y == 0)),
            ("fn", ~decided & (y == 1)),
            ("tn", ~decided & (y == 0)),
        ):
            counts[name].append((float(own.sum()), chance))
    for name, distribution in counts.items():
        assert found[name]["mean"] == pytest.approx(sum(value * chance for value, chance in distribution), abs=1e-9)
        values = sorted({value for value, _ in distribution})
        level = np.cumsum([sum(chance for value, chance in distribution if value == one) for one in values])
        ends = [values[int(np.searchsorted(level, q - 1e-12))] for q in (0.05, 0.95)]
        assert [found[name]["low"], found[name]["high"]] == pytest.approx(ends, abs=1e-9)
    known = {"tp": 3.0, "fp": 1.0, "fn": 1.0, "tn": 2.0}
    assert {name: found[name]["known"] for name in known} == known


def test_weights_count_in_the_confusion_matrix():
    weight = np.arange(1.0, 11.0)
    found = dm.report.summarize(small(sample_weight=weight))["confusion"]
    assert found["weighted"]
    assert sum(found[name]["mean"] for name in ("tp", "fp", "fn", "tn")) == pytest.approx(weight.sum())
    # Rows 3 and 9 are missing and decided positive.
    assert found["tp"]["mean"] == pytest.approx(1 + 4 + 10 + 0.7 * 3 + 0.5 * 9)


@cache
def learned_area():
    return learned(metrics="roc_auc")["roc_auc"]


@pytest.mark.parametrize("metrics", ["gini", ["recall", "gini"], "recall"])
def test_the_roc_curve_has_its_area_whatever_was_asked_for(metrics):
    summary = dm.report.summarize(learned(metrics=metrics))
    distribution = learned_area()
    area = summary["curves"]["auc"]
    assert [area["mean"], area["low"], area["high"]] == pytest.approx(
        [distribution.mean(), *distribution.interval(0.9)], abs=1e-9
    )
    page = dm.report.render(summary)
    assert f"ROC-AUC {distribution.mean():.3f}" in page
    assert 'class="guess"' in page


def test_a_chance_is_printed_the_same_everywhere():
    # At the share that was found a Gaussian law of ROC-AUC once stood in for the one evaluated.
    result = learned(metrics=["roc_auc"])
    target = float(result["roc_auc"].ppf(0.35))
    page = dm.report.render(dm.report.summarize(result, targets={"roc_auc": target}))
    said = f"{result.target_probability('roc_auc', target):.1%}"
    table = page.partition('id="share-table"')[2].partition("</table>")[0]
    assert f'data-column="probability of the target">{said}</td>' in table
    assert f"{said}, asked for 90%" in page


def test_the_top_says_what_was_assumed_the_threshold_the_date_and_verdicts():
    summary = dm.report.summarize(small(threshold=0.45), targets={"recall": 0.1, "precision": 0.99}, date="2026-06-30")
    page = dm.report.render(summary)
    top = page.partition("<header>")[2].partition("</header>")[0]
    for text in ("missing labels are independent", "0.45", "2026-06-30", ">PASS</strong>", ">FAIL</strong>"):
        assert text in top
    assert summary["metrics"]["recall"]["target"]["verdict"] == "PASS"
    text = dm.report.render(summary, "markdown")
    assert "**FAIL** precision at least 0.99" in text
    assert "- date of the report: 2026-06-30" in text


def test_how_sure_is_sure_enough_can_be_said():
    chance = small().target_probability("recall", 0.75)
    for confidence, verdict in ((chance, "PASS"), (min(1.0, chance + 1e-6), "FAIL")):
        found = dm.report.summarize(small(), targets={"recall": 0.75}, confidence=confidence)
        assert found["metrics"]["recall"]["target"]["verdict"] == verdict
    with pytest.raises(dm.InputError, match=r"confidence: 90\. It must lie in \[0, 1\]"):
        dm.report.summarize(small(), confidence=90)


def test_warnings_are_one_banner():
    y_true, y_score = [1, 0] * 40 + [None] * 40, np.r_[np.tile([0.8, 0.2], 40), np.linspace(0.6, 0.99, 40)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dm.evaluate(y_true, y_score, metrics="recall")
    assert result.warnings
    page = dm.report.render(dm.report.summarize(result))
    assert page.count('class="warning"') == 1
    assert re.findall(r'<strong id="warnings">(\d+) warnings?</strong>', page) == [str(len(result.warnings))]
    assert html.escape(result.warnings[0].message[:40]) in page


@pytest.mark.parametrize("audit", [None, {}])
def test_contents_are_the_headings(audit):
    page = dm.report.render(dm.report.summarize(small(), audit=audit))
    listed = re.findall(r'<li><a href="#([^"]+)">([^<]+)</a></li>', page)
    assert listed == re.findall(r'<h2 id="([^"]+)">([^<]+)</h2>', page)


def test_the_date_is_given_or_that_of_the_build_or_today(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert date_of(dt.date(2026, 6, 30)) == date_of(dt.datetime(2026, 6, 30, 23)) == date_of("2026-06-30")
    assert abs(dt.date.fromisoformat(date_of()) - dt.datetime.now().astimezone().date()) <= dt.timedelta(days=1)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert date_of() == "1970-01-02"
    with pytest.raises(dm.InputError, match="date: 'June'"):
        date_of("June")


def test_an_audit_file_has_the_hash_of_the_rows_and_versions():
    summary = dm.report.summarize(small(), audit={"model": "<b>scorecard</b> 3"})
    page, text = dm.report.render(summary), dm.report.render(summary, "markdown")
    digest = summary["audit"]["sha256"]
    assert re.fullmatch("[0-9a-f]{64}", digest)
    for view in (page, text):
        assert digest in view
        assert f"{np.__version__}" in view
    assert "&lt;b&gt;scorecard&lt;/b&gt; 3" in page
    assert "audit={'model': '<b>scorecard</b> 3'}" in summary["reproduce"]["code"]
    assert "For the audit file" not in dm.report.render(dm.report.summarize(small()))
    with pytest.raises(dm.InputError, match="audit: expected facts by name"):
        dm.report.summarize(small(), audit="v3")  # type: ignore[arg-type]


def test_the_hash_is_of_the_rows_in_any_order_and_of_nothing_less():
    data = small().data
    turned = dm.EvaluationSet(Y_TRUE[::-1], Y_SCORE[::-1], missingness=dm.missing.Fixed(P[::-1]))
    assert data_hash(dm.EvaluationSet(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed(P))) == data_hash(turned)
    others = [
        dm.EvaluationSet([0, *Y_TRUE[1:]], Y_SCORE, missingness=dm.missing.Fixed(P)),
        dm.EvaluationSet(Y_TRUE, [0.91, *Y_SCORE[1:]], missingness=dm.missing.Fixed(P)),
        dm.EvaluationSet(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed(P), threshold=0.35),
        dm.EvaluationSet(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed(P), sample_weight=[2.0, *[1.0] * 9]),
        dm.EvaluationSet(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed([0.7, 0.2, 0.51])),
        data,
    ]
    assert len({data_hash(one) for one in [turned, *others]}) >= 6


def test_a_table_to_save_is_inside_its_link():
    page = dm.report.render(dm.report.summarize(small()))
    address = html.unescape(re.findall(r'download="threshold.csv" href="data:text/csv;charset=utf-8,([^"]+)"', page)[0])
    table = pd.DataFrame([line.split(",") for line in unquote(address).strip().split("\n")[1:]])
    curves = dm.report.summarize(small())["curves"]
    assert len(table) == 2 * len(curves["thresholds"])
    assert table[2].astype(float).tolist() == pytest.approx(
        [*curves["metrics"]["precision"]["mean"], *curves["metrics"]["recall"]["mean"]], rel=1e-8
    )


def test_no_cell_of_a_table_to_save_is_a_formula():
    lines = csv_text(["a"], [["=cmd()"], ["+1"], ["-1"], ["@x"], ['"'], ["a,b"], [-0.5]]).split("\n")
    assert lines == ["a", "'=cmd()", "'+1", "'-1", "'@x", '""""', '"a,b"', "-0.5"]


def test_without_a_browser_a_pdf_is_refused_with_the_way_to_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["darkmetrics.report.render"], "_find_programs", list)
    for result in (small(), grouped()):
        with pytest.raises(dm.exceptions.MethodError, match=r"'x\.pdf' needs Chromium.*'x\.html'.*print it to PDF"):
            result.report(tmp_path / "x.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not any(map(shutil.which, ("chromium", "google-chrome"))), reason="no browser prints here")
def test_a_browser_prints_the_pdf(tmp_path):
    path = small().report(tmp_path / "x.pdf")
    assert path.read_bytes().startswith(b"%PDF-")
    assert list(tmp_path.iterdir()) == [path]


def grouped():
    table = pd.DataFrame({"shop": ["a", "b"] * 60, "y": [1, 0, None] * 40, "p": np.linspace(0, 1, 120)})
    groups = dm.evaluate_by("y", "p", data=table, by="shop", metrics="recall", missingness=dm.missing.Fixed(0.5))
    return groups.alerts({"recall": 0.9})


def test_without_a_path_the_page_is_returned_for_a_notebook():
    page = small().report(title="<June>", date="2026-06-30")
    shown = page._repr_html_()
    assert shown.startswith('<iframe title="&lt;June&gt;" sandbox="allow-scripts allow-downloads"')
    inside = re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"></iframe>', shown)
    assert inside is not None
    assert html.unescape(inside[1]) == page.html
    assert page.html == small().report(title="<June>", date="2026-06-30").html
    assert "Classifier metrics in 2 groups" in grouped().report().html
    assert pickle.loads(pickle.dumps(page)) == page


def cells(result):
    """The cells of the body of a table in a notebook, with their alignment."""
    return re.findall(r'<td style="text-align: (\w+)">(.*?)</td>', result._repr_html_())


def test_a_notebook_shows_laws_sets_thresholds_and_alerts_as_tables():
    result, alerts = small(), grouped()
    empty = alerts.grouped.alerts({"recall": 0.01})
    distribution = cells(result["recall"])
    assert [("left", "mean"), ("right", f"{result['recall'].mean():.3f}")] == distribution[:2]
    assert [text for _, text in cells(result.data)][:4] == ["decided positive", "3", "1", "2"]
    best = dm.threshold_curves(result, metrics="recall").best_threshold("recall")
    assert [text for _, text in cells(best)][1:3] == [f"{best.threshold:g}", f"{best.value:.3f}"]
    assert alerts
    assert alerts._repr_html_().count("<tr>") == 2 + len(alerts.grouped)
    assert cells(alerts).count(("left", "alert")) == len(alerts)
    assert isinstance(alerts, Sequence)
    assert not empty
    assert "No alert" in empty._repr_html_()
    assert type(pickle.loads(pickle.dumps(alerts))) is type(alerts)


def test_facts_that_are_none_are_refused_before_the_work(monkeypatch):
    result = small()
    monkeypatch.setattr(type(result), "to_dict", lambda self: pytest.fail("worked first"))
    with pytest.raises(dm.InputError, match=r"^audit: expected facts by name, .* got True"):
        dm.report.summarize(result, audit=True)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------- the call


AGES = np.arange(80) % 40
HELD_OUT = (np.tile([1.0, 0.0], 40), np.linspace(0.02, 0.98, 80))
# What the call is made with, and how it is printed.
CALLS: dict[str, tuple[Any, str]] = {
    "a column": (dm.missing.Fixed("own"), "dm.missing.Fixed(probability='own')"),
    "an array": (dm.missing.Fixed(np.full(80, 0.4)), "dm.missing.Fixed(probability=probability)"),
    "strata": (dm.missing.ByScore(strata=AGES % 2), "dm.missing.ByScore(strata=strata)"),
    "ages": (dm.missing.Delayed(age=AGES, reviewed="all"), "dm.missing.Delayed(age=age, reviewed='all')"),
    "reference rows": (
        dm.missing.Reference(*HELD_OUT),
        "dm.missing.Reference(y_true=reference_y_true, y_score=reference_y_score)",
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_printed_call_gives_the_same_result(name):
    missingness, code = CALLS[name]
    y_score = np.linspace(0.01, 0.99, 80)
    y_true = np.where(np.arange(80) % 3 == 0, np.nan, np.arange(80) % 2)
    table = pd.DataFrame({"fraud": y_true, "p": y_score, "own": 0.4})
    result = dm.evaluate("fraud", "p", data=table, missingness=missingness, metrics="recall", rng=0)
    notes, call = call_of(result)
    assert call == f"dm.evaluate('fraud', 'p', data=data, metrics='recall', missingness={code}, rng=0)"
    values = {"probability": np.full(80, 0.4), "strata": AGES % 2, "age": AGES, "data": table, "dm": dm}
    values |= {"reference_y_true": HELD_OUT[0], "reference_y_score": HELD_OUT[1]}
    assert eval(call, values).to_dict() == result.to_dict()
    needed = notes[0].removeprefix("# ").partition(":")[0].split(", ")
    assert eval(call, {key: values[key] for key in (*needed, "dm")}).to_dict() == result.to_dict()
