"""The scaling law of examples/law: predictions follow from the law, and it was not fitted to the held-out runs."""

import csv
from pathlib import Path

import pytest

from softnum.tta.arithmetic_law import read_any_law
from softnum.tta.law_runs import read_runs

LAW = Path(__file__).resolve().parents[2] / "examples" / "law"


def predictions():
    with open(LAW / "predictions.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_predictions_are_those_of_the_law():
    law = read_any_law(LAW / "law.json")
    rows = predictions()
    assert len(rows) == 10
    for row in rows:
        products = float(row["products"]) if row["products"] else None
        told = law.of(row["design"], products).loss(float(row["parameters"]), float(row["tokens"]))
        assert told.extrapolated
        for name, value in zip(("bits_per_byte", "low", "high"), told[:3], strict=True):
            assert float(row[name]) == pytest.approx(value, abs=6e-5)


def test_held_out_runs_are_of_a_size_that_the_law_did_not_see():
    law = read_any_law(LAW / "law.json")
    runs, excluded = read_runs(LAW / "held-out.tar.xz", "bits_per_byte")
    assert runs and not excluded
    predicted = {(row["design"], float(row["tokens"])): row for row in predictions()}
    for run in runs:
        row = predicted[run.design, run.tokens]
        assert run.parameters == float(row["parameters"]) > law.base.parameters[1]
        if row["products"]:
            assert run.products == pytest.approx(float(row["products"]))
