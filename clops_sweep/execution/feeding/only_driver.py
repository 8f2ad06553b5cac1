"""The locks of searches: one driver at a time runs them."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator

from clops_sweep.data.files.folder import Lock, locked
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import file_name
from clops_sweep.store.run_store import RunStore


@contextlib.contextmanager
def only_driver_of_all(searches: Iterable[SearchSpace], store: RunStore) -> Iterator[None]:
    """Lock several searches; see `only_driver`."""
    with contextlib.ExitStack() as locks:
        for space in searches:
            locks.enter_context(only_driver(space, store))
        yield


@contextlib.contextmanager
def only_driver(space: SearchSpace, store: RunStore) -> Iterator[None]:
    """Lock a search, so that one driver at a time runs it on this machine or on a shared folder of results.

    A driver continues the trials that a dead driver left running. The lock is released when its process ends, however
    it ends.

    Raises:
        UsageError: another driver is running the search.
    """
    owner = [space.name]
    if store.files.folder is None:  # stores at URIs share a folder of logs and locks
        owner.append(store.files.shown)
    own = hashlib.sha256("\n".join(owner).encode()).hexdigest()  # other names may have the same file name
    with locked(store.log_folder / "locks" / f"search-{file_name(space.name)[:40]}-{own}") as holder:
        if holder is Lock.ELSEWHERE:
            raise UsageError(
                f"{space.subject} is being run by another driver on the same results; "
                "a single one uses its whole cluster"
            )
        yield
