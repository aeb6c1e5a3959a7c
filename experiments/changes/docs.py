"""The tables of docs/how-to/did-it-get-worse.md that come from experiments/results/changes.csv."""

from collections.abc import Callable

import pandas as pd

from experiments.pieces import ROOT, filled, marks_of, results_of

RESULTS, PAGE = results_of("changes"), ROOT / "docs" / "how-to" / "did-it-get-worse.md"
MARKED = marks_of("changes")


def both_ways(found: pd.DataFrame) -> pd.DataFrame:
    """Each pair also the other way round: the later month as the earlier one, so that drops and rises are as many."""
    turned = found.assign(
        tenth=9 - found["tenth"],
        p_fell=found["pairs"] - found["p_fell"],
        did=found["rose"],
        rose=found["did"],
        said=found["said_rose"],
        wrong=found["wrong_rose"],
        said_rose=found["said"],
        wrong_rose=found["wrong"],
    )
    return pd.concat([found, turned], ignore_index=True)


def by_tenth(found: pd.DataFrame) -> pd.DataFrame:
    """Mean P(fell) and the share that fell, for each tenth of P(fell)."""
    sums = found.groupby("tenth")[["pairs", "p_fell", "did"]].sum()
    return sums.assign(said=sums["p_fell"] / sums["pairs"], fell=sums["did"] / sums["pairs"])


def reliability(found: pd.DataFrame) -> str:
    """How often metrics fell by what P(fell) said: told the reason, and told nothing."""
    columns = {}
    for words, own in (("told", found[found["told"] != "nothing"]), ("nothing", found[found["told"] == "nothing"])):
        columns[words] = by_tenth(both_ways(own))
    lines = [
        "| P(fell) | told why: pairs | mean P(fell) | fell | told nothing: pairs | mean P(fell) | fell |",
        f"| --- |{' --: |' * 6}",
    ]
    for tenth in range(10):
        cells = []
        for sums in columns.values():
            one = sums.loc[tenth]
            cells += [f"{int(one['pairs']):,}", f"{one['said']:.0%}", f"{one['fell']:.0%}"]
        lines.append(f"| {tenth / 10:.1f} to {(tenth + 1) / 10:.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def said(found: pd.DataFrame) -> str:
    """Per problem and what was told: pairs, said to have fallen at 95%, wrong ones, and 90% intervals that held."""
    lines = [
        "| labels missing | told | pairs | did not fall | said | wrong | wrong, of did not fall | 90% intervals held |",
        f"| --- | --- |{' --: |' * 6}",
    ]
    for (how, told), rows in found.groupby(["how", "told"], sort=False):
        sums = rows[["pairs", "did", "said", "wrong", "held"]].sum()
        stayed = sums["pairs"] - sums["did"]
        cells = [int(sums["pairs"]), int(stayed), int(sums["said"]), int(sums["wrong"])]
        shares = [f"{sums['wrong'] / stayed:.1%}", f"{sums['held'] / sums['pairs']:.0%}"]
        lines.append(f"| {how} | {told} | {' | '.join([*(f'{cell:,}' for cell in cells), *shares])} |")
    return "\n".join(lines)


def by_chance(found: pd.DataFrame) -> str:
    """With no drop in the population: how often the rows fell, how often that was said, and how often wrongly."""
    own = found[found["drop"] == "none"].assign(kind=found["told"].where(found["told"] == "nothing", "why"))
    lines = ["| told | metric | pairs | fell on the rows | said | wrong |", f"| --- | --- |{' --: |' * 4}"]
    for (kind, metric), rows in own.groupby(["kind", "metric"], sort=True):
        sums = rows[["pairs", "did", "said", "wrong"]].sum().astype(int)
        lines.append(f"| {kind} | {metric} | {' | '.join(f'{number:,}' for number in sums)} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "reliability": reliability,
    "said": said,
    "by-chance": by_chance,
}


def written(page: str, found: pd.DataFrame) -> str:
    """The page with every marked block made anew; the words around them stay."""
    return filled(page, MARKED, TABLES, found)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS)), encoding="utf-8")
