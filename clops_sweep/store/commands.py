"""Command lines for a store, as people paste them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from clops_sweep.errors import masked


def rerun_command(
    run_id: str,
    results: str,
    *,
    verify: bool = False,
    plugins: Sequence[str] = (),
    prepared_root: str | None = None,
) -> str:
    """Return the command line that repeats a run, without the password of a store.

    Args:
        run_id: the run.
        results: its store, as `--results` takes it.
        verify: whether to compare the numbers with the stored ones.
        plugins: the files that register the plug-ins of the run.
        prepared_root: folder of the prepared frames; None for the default.
    """
    options = ["--verify"] if verify else []
    for file in plugins:
        options += ["--plugins", file]
    if prepared_root is not None:
        options += ["--prepared-root", prepared_root]
    return store_command(results, "rerun", run_id, *options)


def store_command(results: str, *words: str) -> str:
    """Return a command line for a store, in any folder, without the password of the store.

    Args:
        results: the store, as `--results` takes it.
        words: the command, its arguments and other options.
    """
    return shlex.join(["clops-sweep", *words, "--results", masked(results)])
