"""The counts published in the paper, exactly, from labels and dates alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.published.chapman import GROUPS, acquired, split_by_term
from clops_sweep.data.published.chapman_files import read_diagnostics
from clops_sweep.data.scenarios import term_of
from clops_sweep.data.sets.named import data_set
from clops_sweep.data.synthetic.generated import PAPER_COUNTS, paper_population


@pytest.mark.parametrize("seed", [0, 1])
def test_chapman_terms_and_splits(data_root: Path, seed: int) -> None:
    rhythms = read_diagnostics(data_root / "chapman" / "Diagnostics.xlsx")
    assert len(rhythms) == 10_646
    assert set(rhythms.values()) == set(GROUPS)
    times = np.array([acquired(record, Path(record)) for record in rhythms])
    terms = term_of(times, np.ones(len(times), bool), DATASETS["chapman"].terms)
    assert np.bincount(terms).tolist() == [5226, 2860, 2560]
    split = split_by_term(times, seed)
    assert np.bincount(split).tolist() == [6387, 2129, 2130]
    # the paper's row "Train" for Time-IL: term 1 in twelve leads, without frames with NaN
    per_term = [np.bincount(split[terms == term]).tolist() for term in range(3)]
    assert per_term == [[3135, 1045, 1046], [1716, 572, 572], [1536, 512, 512]]


def test_physionet2020_labels_are_those_of_the_reference_list(data_root: Path) -> None:
    order = ("Normal", "AF", "I-AVB", "LBBB", "RBBB", "PAC", "PVC", "STD", "STE")
    with open(data_root / "cpsc2018" / "REFERENCE_cpsc2018_full.csv", newline="") as file:
        listed = {
            row["Recording"]: {
                order[int(row[f"{which}_label"]) - 1] for which in ("First", "Second", "Third") if row[f"{which}_label"]
            }
            for row in csv.DictReader(file)
        }
    data = data_set("physionet2020")
    for source in data.find(data_root)[::10]:
        labels = source.read(data.common).windows.labels[0]
        assert {data.common.classes[code] for code in np.flatnonzero(labels)} == listed[source.record]


def test_synthetic_paper_has_the_papers_task_counts_exactly() -> None:
    people = paper_population()
    for split, counts in PAPER_COUNTS.items():
        frames = np.array([person.frames for person in people if person.split == split]).sum(0)
        assert tuple(frames.reshape(6, 2).sum(1)) == counts
    assert len(people) == 291
