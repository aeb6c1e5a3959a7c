"""Several classes on the command line equal the call."""

import json

import numpy as np
import polars as pl
import pytest

import darkmetrics as dm

CLASSES = ("cat", "dog", "fish")


@pytest.fixture
def species(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.5), 300)
    y = (p.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    label = [None if rng.random() < 0.4 else CLASSES[k] for k in y]
    table = pl.DataFrame({"species": label, **{f"p_{name}": p[:, k] for k, name in enumerate(CLASSES)}})
    table.write_csv(tmp_path / "species.csv")
    table.write_parquet(tmp_path / "species.parquet")
    return tmp_path, table


METRICS = ("-m", "accuracy", "-m", "recall[dog]")


@pytest.mark.parametrize("name", ["species.csv", "species.parquet"])
@pytest.mark.parametrize(
    "scores",
    [["--scores-prefix", "p_"], [word for c in CLASSES for word in ("--score", f"{c}=p_{c}")]],
    ids=["prefix", "pairs"],
)
def test_columns_of_classes_are_the_call(species, run, name, scores):
    folder, table = species
    done = run(
        *("evaluate", folder / name, "--label", "species", *scores, "--missingness", "by_score", *METRICS, "-f", "json")
    )
    expected = dm.evaluate(
        "species",
        {name: f"p_{name}" for name in CLASSES},
        data=table,
        missingness="by_score",
        metrics=["accuracy", "recall[dog]"],
        rng=0,
    )
    assert done.code == 0, done.err
    found = json.loads(done.out)["metrics"]
    for metric, entry in expected.to_dict()["metrics"].items():
        assert found[metric]["mean"] == pytest.approx(entry["mean"], abs=1e-9)


def test_reference_rows_have_the_same_columns(species, run):
    folder, table = species
    table.drop_nulls().write_csv(folder / "reference.csv")
    done = run(
        *("evaluate", folder / "species.csv", "--label", "species", "--scores-prefix", "p_", "-m", "accuracy"),
        *("--reference", folder / "reference.csv"),
    )
    assert done.code == 0, done.err
    assert "related as in the reference rows" in " ".join(done.out.split())


def test_bad_columns_of_classes_get_one_line(species, refused):
    file, label = species[0] / "species.csv", ("--label", "species")
    assert refused("evaluate", file, *label, "--scores-prefix", "q_").startswith(
        "--scores-prefix: 0 columns begin with"
    )
    assert refused("evaluate", file, *label, "--scores-prefix", "p_", "--score", "p_cat").startswith(
        "--scores-prefix: "
    )
    assert refused("evaluate", file, *label, "--score", "cat=p_cat").endswith("--score dog=p_dog.")
    line = refused("evaluate", file, *label, "--score", "cat=p_cat", "--score", "dog=p_dgo", "--score", "fish=p_fish")
    assert "'p_dgo'" in line
