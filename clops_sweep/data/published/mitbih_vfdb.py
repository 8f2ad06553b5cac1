"""`mitbih_vfdb`: `mitbih` and the MIT-BIH Malignant Ventricular Ectopy Database; a stress test.

Greenwald, "Development and analysis of a ventricular fibrillation detector", MIT, 1986. Forgetting is severe, but class
and database are confounded: ventricular tachycardia and flutter come almost only from the second database, and a
network can tell the databases apart by their sinus rhythm. So results say little about arrhythmias.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from clops_sweep.data.catalog import DATASETS, OptionValue
from clops_sweep.data.declared.dataset import dataset
from clops_sweep.data.published.locate import find_folder
from clops_sweep.data.published.mitbih import CLASSES, LEADS, RECORD_FILES, RHYTHM_CLASSES, RULES, mitbih_records
from clops_sweep.data.records import Source

VFDB_RATE: Final = 250.0

_VENTRICULAR: Final = {"(VT": "VT", "(VFL": "VFL", "(VF": "VFL", "(VFIB": "VFL"}
_VFDB: Final = {
    "(AFIB": "AFIB",
    "(B": "BIGEMINY",
    "(PM": "PACED",
    "(N": "NSR",
    "(NSR": "NSR",
    "(SBR": "NSR",
    **_VENTRICULAR,
}
"""VFDB has no beat labels, so all of its normal rhythm is NSR."""


@dataset("mitbih_vfdb", classes=(*CLASSES, "VFL", "VT"), channels=(*LEADS, "ECG"), units="mV", rules=RULES)
def mitbih_vfdb(data_root: Path | None, window_seconds: float, **_: OptionValue) -> list[Source]:
    """Find all records of both folders; a fifth pair of classes is VFL (flutter and fibrillation) and VT.

    Ventricular rhythms are classes in both databases. NOISE, which overlays a rhythm, is not a class.
    """
    vfdb = vfdb_records(data_root, window_seconds)
    folder = find_folder(data_root, DATASETS["mitbih"].folders, "mitbih", RECORD_FILES, RECORD_FILES)
    rhythms = {**RHYTHM_CLASSES, **_VENTRICULAR}
    return [*mitbih_records(folder, window_seconds=window_seconds, rhythms=rhythms), *vfdb]


def vfdb_records(data_root: Path | None, window_seconds: float) -> list[Source]:
    """Find the records of VFDB, which is verified alone, but only prepared as part of `mitbih_vfdb`."""
    folder = find_folder(data_root, DATASETS["mitbih_vfdb"].folders, "mitbih_vfdb", RECORD_FILES, itself=())
    return mitbih_records(folder, "vfdb-", window_seconds=window_seconds, rate=VFDB_RATE, rhythms=_VFDB)
