"""`mitbih_vfdb`: `mitbih` and the MIT-BIH Malignant Ventricular Ectopy Database; a stress test.

Greenwald, "Development and analysis of a ventricular fibrillation detector", MIT, 1986. Forgetting is dramatic here,
but class and database are confounded: ventricular tachycardia and flutter come almost only from the second one, and
a network tells the databases apart on sinus rhythm alone. Results on it say little about the heart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.published.locate import find_folder, recording_names
from clops_sweep.data.published.mitbih import RATE, RECORD_FILES, RHYTHM_CLASSES, MitBih
from clops_sweep.data.reader import Source

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
"""VFDB has no beat labels, so its normal rhythm is NSR as a whole."""


class MitBihVfdb(MitBih):
    """The eight classes of `mitbih` and two more, VFL (flutter and fibrillation) and VT, as a fifth pair."""

    name = "mitbih_vfdb"
    classes = (*MitBih.classes, "VFL", "VT")
    lead_names = (*MitBih.lead_names, "ECG")

    def find(self, data_root: Path | None) -> list[Source]:
        """All records of both folders."""
        vfdb = self.find_vfdb(data_root)
        return [*super().find(data_root), *vfdb]

    def find_vfdb(self, data_root: Path | None) -> list[Source]:
        """The records of VFDB."""
        folder = find_folder(data_root, DATASETS["mitbih_vfdb"].folders, self.name, RECORD_FILES, itself=())
        return [
            Source(f"vfdb-{name}", tuple(folder / f"{name}{suffix}" for suffix in (".hea", ".dat", ".atr")), "vfdb")
            for name in recording_names(folder)
        ]

    def rate(self, source: Source) -> float:
        """360 Hz, and 250 Hz in VFDB."""
        return VFDB_RATE if source.detail == "vfdb" else RATE

    def rhythms(self, source: Source) -> Mapping[str, str]:
        """Ventricular rhythms are classes in both databases; NOISE, which overlays a rhythm, is none."""
        return _VFDB if source.detail == "vfdb" else {**RHYTHM_CLASSES, **_VENTRICULAR}


class Vfdb(MitBihVfdb):
    """The records of VFDB alone, which are verified by themselves and prepared as part of `mitbih_vfdb` only."""

    def find(self, data_root: Path | None) -> list[Source]:
        """All records of the one folder."""
        return self.find_vfdb(data_root)
