"""The data set of a name."""

from __future__ import annotations

from collections.abc import Mapping

from clops_sweep.data.catalog import DATASETS, OptionValue
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.sets.data_set import DataSet
from clops_sweep.data.sets.declared_set import DeclaredSet
from clops_sweep.data.sets.packaged_set import PackagedSet
from clops_sweep.errors import UsageError, either, nearest_or_all


def data_set(name: str, options: Mapping[str, OptionValue] | None = None) -> DataSet:
    """Return a data set with the given options, ready to be prepared.

    Raises:
        UsageError: no such data set, or no such option.
    """
    if name == "vfdb":
        raise UsageError("vfdb is prepared as part of the data set 'mitbih_vfdb'; use that name")
    if name not in DATASETS:
        raise UsageError(
            f"dataset {shorten(name)!r} is not known{nearest_or_all(name, DATASETS)}; "
            + either("--plugins FILE adds those that a file declares", "importing a file adds those that it declares")
        )
    packaged = DATASETS.packaged(name)
    if packaged is not None:
        return PackagedSet(name, packaged, options or {})
    return DeclaredSet(name, DATASETS.declared(name), options or {})
