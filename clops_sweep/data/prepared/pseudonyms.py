"""Pseudonyms of people: keyed hashes whose random secret stays beside the prepared data."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clops_sweep.data.files.folder import one_sentence
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError

SECRET: Final = ".pseudonym_secret"
"""Name of the file with the secret, in the folder of prepared data sets."""
_BYTES = 32
_DIGITS = 8


@dataclass(frozen=True)
class Pseudonyms:
    """Pseudonyms of the people of one data set: equal for all its splits, runs and reports.

    Attributes:
        dataset: name of the data set.
        secret: the key of HMAC-SHA256.
        is_kept: whether the secret is in a file, so that a person can be looked up later.
    """

    dataset: str
    secret: bytes = field(repr=False)
    is_kept: bool

    def of(self, person: str) -> str:
        """Return the first eight digits of the HMAC-SHA256 of data set and id."""
        return hmac.new(self.secret, f"{self.dataset}\n{person}".encode(), "sha256").hexdigest()[:_DIGITS]


def pseudonyms(dataset: str, prepared_root: Path) -> Pseudonyms:
    """Return the pseudonyms of a data set, from the secret of a folder of prepared data; a new one where it has none.

    If the secret can neither be read nor written, it is new and not kept.

    Args:
        dataset: name of the data set.
        prepared_root: the folder of prepared data sets.

    Raises:
        UsageError: the file of the secret has another size: it was cut or replaced.
    """
    file = prepared_root / SECRET
    try:
        _make_unless_there(file)
        with open_regular(file, _BYTES) as opened:
            secret = opened.read()
    except OSError:
        return Pseudonyms(dataset, secrets.token_bytes(_BYTES), is_kept=False)
    if len(secret) != _BYTES:
        raise UsageError(
            f"{file}: has {len(secret)} bytes; expected a secret of {_BYTES}; restore the file, "
            "or delete it for other pseudonyms"
        )
    return Pseudonyms(dataset, secret, is_kept=True)


def kept_pseudonyms(dataset: str, prepared_root: Path) -> Pseudonyms:
    """Return the pseudonyms of a data set, from the secret that earlier reports have used.

    Raises:
        UsageError: the folder has no secret, or it cannot be read.
    """
    file = prepared_root / SECRET
    with one_sentence(file):
        if not file.exists():
            raise UsageError(f"{file}: not found; pseudonyms can be looked up only with the secret of their report")
        os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    return pseudonyms(dataset, prepared_root)


def _make_unless_there(file: Path) -> None:
    """Write a new secret, for its owner alone, unless the file exists: of several processes, one wins."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    staging = file.with_name(f"{SECRET}.{secrets.token_hex(8)}")
    handle = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(secrets.token_bytes(_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(staging, file)  # never replaces a secret
    finally:
        staging.unlink(missing_ok=True)
