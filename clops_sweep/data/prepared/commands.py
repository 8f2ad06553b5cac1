"""Commands that messages recommend: they work as typed, with the file, folders and options of this process."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.origins import ORIGINS

OPEN_FILES, OPEN_FOLDER = "FILE", "DIR"
"""Placeholders for the file that declares a data set or encoder, and for the publishers' files, if unknown here."""


def default_prepared_root() -> Path:
    """Return CLOPS_PREPARED_ROOT, or else `prepared` in the user's cache folder for clops-sweep."""
    if chosen := os.environ.get("CLOPS_PREPARED_ROOT"):
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("clops-sweep", appauthor=False) / "prepared"


def data_command(
    verb: str,
    name: str,
    *options: str,
    prepared_root: Path | None = None,
    data_root: Path | str | None = None,
    encoder: str | None = None,
) -> str:
    """Return a command on a data set, such as "clops-sweep data prepare wearable --plugins own.py".

    Args:
        verb: the command after "data", such as "prepare".
        name: name of the data set.
        options: further options.
        prepared_root: folder of prepared sets; left out if it is the default.
        data_root: folder of the publishers' files, if known.
        encoder: the encoder, if the command takes one.
    """
    words = ["clops-sweep", "data", verb, name]
    words += [] if encoder is None else ["--encoder", encoder]
    words += options
    for file in _files(name, encoder) if verb != "evict" else ():
        words += ["--plugins", file]
    if data_root is None and verb == "prepare" and _reads_published_files(name):
        data_root = OPEN_FOLDER
    if data_root is not None:
        words += ["--data-root", str(data_root)]
    if prepared_root is not None and prepared_root != default_prepared_root():
        words += ["--prepared-root", str(prepared_root)]
    return " ".join(map(_quoted, words))


def _reads_published_files(name: str) -> bool:
    """Return whether a preparation needs --data-root; own data are read beside the file that declares them."""
    folders = DATASETS[name].folders if name in DATASETS else ()
    return bool(folders) and not os.environ.get("CLOPS_DATA_ROOT")


def _files(name: str, encoder: str | None) -> list[str]:
    """Return the files that declare a user's data set and encoder."""
    wanted = [("dataset", name)] if DATASETS.needs_file(name) else []
    if encoder is not None and ("encoder", encoder) in ORIGINS:
        wanted.append(("encoder", encoder))
    files = []
    for key in wanted:
        origin = ORIGINS.get(key)
        file = None if origin is None else origin.file
        files.append(file if file is not None and file.endswith(".py") else OPEN_FILES)
    return list(dict.fromkeys(files))


def _quoted(word: str) -> str:
    """Quote a word for a shell, with double quotes if they suffice: messages have single ones around the command."""
    quoted = shlex.quote(word)
    return f'"{word}"' if quoted != word and not set(word) & set('"$`\\!') else quoted
