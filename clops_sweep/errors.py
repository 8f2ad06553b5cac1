"""The ways in which things end early that a user is told about in one sentence."""

from __future__ import annotations


class BadInput(ValueError):
    """Wrong usage or input: one sentence that names the file or key, what is wrong and what would be right.

    The command prints the sentence and ends with exit status 2, before any worker has started.
    """


class DamagedStore(BadInput):
    """A file of the results store or of the prepared data that is not what its writer left there."""


class StoreError(Exception):
    """The store could not be read or written while a sweep was running.

    That is no fault of a run: it is not finished, and has not failed. The command prints the sentence and ends with
    exit status 1; the same command goes on when the store is back.
    """
