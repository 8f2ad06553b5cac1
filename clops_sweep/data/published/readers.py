"""The reader of a data set, by the name that the catalogue has for it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.declared.declared_reader import DeclaredReader
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.reader import OptionValue, Reader
from clops_sweep.errors import BadInput, listed


def reader_for(name: str, options: Mapping[str, OptionValue] | None = None) -> Reader:
    """The reader of a data set of the catalogue, with the given options.

    Raises:
        BadInput: no such data set, or no such option.
    """
    if name == "vfdb":
        raise BadInput("vfdb is prepared as part of the data set 'mitbih_vfdb'; use that name")
    if name not in DATASETS:
        raise BadInput(
            f"dataset {shorten(name)!r} is not known; known: {listed(DATASETS)}; --plugins FILE adds those that a file "
            "declares"
        )
    if name in DATASETS.added:
        declared = DATASETS.declared(name)
        if declared is not None and isinstance(declared.member, type):
            own: Reader = declared.member(options)
            return own
        return DeclaredReader(DATASETS[name], options)
    module, _, attribute = DATASETS[name].reader.partition(":")
    reader: Reader = getattr(importlib.import_module(module), attribute)(options)
    return reader
