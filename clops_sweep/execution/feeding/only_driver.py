"""The lock of a search: one driver at a time runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from clops_sweep.data.files.folder import held
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.search_space import SearchSpace


@contextlib.contextmanager
def only_driver(space: SearchSpace, work_folder: Path) -> Iterator[None]:
    """Lock a search, so that one driver at a time runs it on this machine or on a shared folder of results.

    A driver continues the trials that a dead driver left running. The lock is released when its process ends, however
    it ends.

    Raises:
        UsageError: another driver is running the search.
    """
    with held(work_folder / "locks" / space.name) as alone:
        if alone is False:
            raise UsageError(
                f"search space {space.name!r} is being run by another driver on the same results; "
                "a single one uses its whole cluster"
            )
        yield
