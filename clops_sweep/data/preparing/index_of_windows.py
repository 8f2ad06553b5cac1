"""One index of all frames, from the windows of every record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.records import Index, Source, Windows


def index_of(sources: Sequence[Source], windows: Sequence[Windows]) -> Index:
    """The frames of all windows, record after record; patients and domains are numbered in the order of their names."""
    people: list[str] = []
    sizes: list[int] = []
    times: list[Any] = []
    domains: dict[str, list[str]] = {name: [] for name in windows[0].domains}
    for offer in windows:
        if offer.sizes is None:
            people.append(str(offer.patient))
            sizes.append(len(offer))
        else:
            people.extend(offer.patient)
            sizes.extend(offer.sizes.tolist())
        times.extend([None] if offer.time is None else np.atleast_1d(offer.time))
        for name, column in domains.items():
            value = offer.domains[name]
            column.extend([value] if isinstance(value, str) else value)
    patient_names = tuple(sorted(set(people)))
    codes = {name: code for code, name in enumerate(patient_names)}
    known = all(time is not None for time in times)
    return Index(
        patient_names,
        tuple(chain.from_iterable(source.names for source in sources)),
        np.repeat(np.array([codes[name] for name in people], np.int32), sizes),
        np.repeat(np.arange(len(people), dtype=np.int32), sizes),
        np.concatenate([w.leads for w in windows]).astype(np.int16),
        np.concatenate([w.start for w in windows]).astype(np.float64),
        np.concatenate([w.labels for w in windows]),
        np.repeat(np.array(times, "datetime64[s]"), sizes) if known else None,
        {name: _domain_of(column, sizes) for name, column in domains.items()},
    )


def _domain_of(values: Sequence[str], sizes: Sequence[int]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """A domain of every frame [n] as a position in its names, sorted, from that of every record."""
    names, codes = np.unique(np.array(values), return_inverse=True)
    return np.repeat(codes.astype(np.int32), sizes), tuple(map(str, names))
