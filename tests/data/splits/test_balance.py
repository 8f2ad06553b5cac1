"""Caps per patient and class."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clops_sweep.data.published.mitbih import keep_evenly
from clops_sweep.data.records import Index

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=80)


@given(rows, st.integers(1, 12), st.integers(1, 40))
def test_caps_hold_and_nobody_is_lost(drawn: list[tuple[int, int]], per_patient: int, per_class: int) -> None:
    patients, labels = np.array(drawn).T
    zeros = np.zeros(len(drawn))
    index = Index(
        tuple("abcde"),
        ("r",),
        patients.astype(np.int32),
        zeros.astype(np.int32),
        zeros.astype(np.int16),
        zeros,
        labels,
        None,
    )
    keep = keep_evenly(index, per_patient_and_class=per_patient, per_class=per_class)
    for label in np.unique(labels):
        of_class = labels == label
        carriers = len(np.unique(patients[of_class]))
        assert (keep & of_class).sum() <= max(per_class, carriers)
        for patient in np.unique(patients[of_class]):
            kept = (keep & of_class & (patients == patient)).sum()
            assert 1 <= kept <= per_patient
    if len(drawn) <= min(per_patient, per_class):
        assert keep.all()
