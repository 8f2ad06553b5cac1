"""Download openly available data sets from PhysioNet, file by file through wfdb's downloader.

The publisher's SHA256SUMS.txt lists the files: complete files are skipped without a request, truncated ones are
completed, and files with another content are downloaded again.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, Final

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.files.checksums import SUMS, is_whole, published_sums
from clops_sweep.data.files.folder import is_of_the_file_system, one_sentence
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.files.wfdb_records import load_wfdb
from clops_sweep.errors import UsageError

_CONNECTIONS: Final = 2
"""Simultaneous downloads, as many as wfdb uses, so as not to overload the server."""
_PAUSES: Final = (1.0, 4.0)
"""Seconds before each retry of a file; a server fails now and then over ten thousands of requests."""
_SILENCE: Final = 300.0
"""Seconds without a finished file after which the server counts as unreachable."""


@dataclass(frozen=True)
class Part:
    """The files of a version of a PhysioNet project whose names match `wanted`; they keep their names in `folder`."""

    project: str
    folder: str
    wanted: str


_RECORDS: Final = r"RECORDS|LICENSE\.txt|\d+\.(hea|dat|atr)"
_MITDB: Final = Part("mitdb/1.0.0", "mitdb", _RECORDS)
_VFDB: Final = Part("vfdb/1.0.0", "vfdb", _RECORDS)

DOWNLOADS: Final[Mapping[str, Sequence[Part]]] = {
    "mitbih": (_MITDB,),
    "mitbih_vfdb": (_MITDB, _VFDB),
    "ptbxl": (Part("ptb-xl/1.0.3", "ptbxl", r"LICENSE\.txt|\w+\.csv|records500/\d+/\w+\.(hea|dat)"),),
    "physionet2020": (
        Part("challenge-2020/1.0.2", "challenge-2020", r"LICENSE\.txt|training/cpsc_2018/\w+/\w+\.(hea|mat)"),
    ),
}


PARTS_OF: Final[Mapping[str, tuple[str, Part]]] = {"vfdb": ("mitbih_vfdb", _VFDB)}
"""Parts of data sets that can be downloaded alone."""


def download(name: str, data_root: Path, progress: bool = False) -> list[Path]:
    """Download a data set into its folders under `data_root`, and return those folders.

    Raises:
        UsageError: the data set is not openly available (the message says where to get it), PhysioNet cannot be
            reached, or a folder cannot be written.
    """
    parts = (PARTS_OF[name][1],) if name in PARTS_OF else DOWNLOADS.get(name)
    if parts is None:
        info = DATASETS[DataSet(name).name]
        if not info.folders:
            raise UsageError(f"{name} is generated, not downloaded; run 'clops-sweep data prepare {name}'")
        raise UsageError(
            f"{name} cannot be downloaded openly ({info.licence}); get it from {info.source} and put it into "
            f"{info.folders[0]}/ under the data root"
        )
    for part in parts:
        # wfdb prints a line per file, which users of this command do not need
        with contextlib.redirect_stdout(io.StringIO()), ThreadPool(_CONNECTIONS) as pool:
            _fetch(part, data_root / part.folder, pool, progress)
    return [data_root / part.folder for part in parts]


def _fetch(part: Part, folder: Path, pool: ThreadPool, progress: bool) -> None:
    get = partial(_get, load_wfdb().io.download.dl_pn_file, part.project, folder)
    with _gone_if_empty(folder):
        list(_as_they_come(pool, lambda name: get(name, True, ()), [SUMS]))
    sums = published_sums(folder)
    wanted = [name for name in sums if re.fullmatch(part.wanted, name)]
    if not wanted:
        raise UsageError(f"{folder / SUMS}: lists no file of {part.project}; check the network and download it again")
    done = _as_they_come(pool, lambda name: _complete(get, folder / name, name, sums[name]), wanted)
    for _ in with_progress(done, len(wanted), f"downloading {part.folder}", progress):
        pass


@contextlib.contextmanager
def _gone_if_empty(folder: Path) -> Iterator[None]:
    """Create a folder for the block; afterwards remove it and the created parents if they are empty."""
    with one_sentence(folder):
        made = [place for place in (folder, *folder.parents) if not place.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # rmdir fails at the first folder that is not empty
            for place in made:
                place.rmdir()


def _as_they_come(pool: ThreadPool, task: Callable[[str], None], names: Iterable[str]) -> Iterator[None]:
    """Run a task for every name, two at a time; the first failure stops the rest."""
    results = pool.imap_unordered(task, names)
    while True:
        try:
            yield results.next(timeout=_SILENCE)
        except StopIteration:
            return
        except multiprocessing.TimeoutError:
            raise UsageError(
                f"physionet.org has sent no file for {_SILENCE:g} seconds; check the network and run the same command "
                "again, it goes on where it stopped"
            ) from None


def _complete(get: Callable[..., None], path: Path, name: str, sha256: str) -> None:
    """Download the missing part of a file, or all of it if the present part differs from the original."""
    with one_sentence(path):
        if is_whole(path, sha256):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        for anew in (False, True):
            get(name, anew, _PAUSES)
            if is_whole(path, sha256):
                return
    raise UsageError(f"{path}: the received file does not have the published SHA-256; download it again later")


def _get(
    fetch: Callable[[Sequence[Any]], None],
    project: str,
    folder: Path,
    name: str,
    anew: bool,
    pauses: Sequence[float],
) -> None:
    """Download one file through wfdb, which completes a file that is too short, unless `anew`."""
    where, file = posixpath.split(name)
    for pause in (*pauses, None):
        try:
            fetch((file, where, project, str(folder), True, anew))
            return
        except Exception as error:  # errors of DNS, TCP, TLS and HTTP, as wfdb wraps them
            if is_of_the_file_system(error):
                with one_sentence(folder / name):
                    raise
            if pause is None or isinstance(error, FileNotFoundError):
                raise UsageError(_why_not(error, project, name)) from None
        time.sleep(pause)


def _why_not(error: Exception, project: str, name: str) -> str:
    """Return a sentence on why a download failed: no connection, no such file, or a server error."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    again = "run the same command again, it goes on where it stopped"
    if kinds & {"ConnectionError", "Timeout"}:  # includes errors of requests
        return f"physionet.org cannot be reached ({type(error).__name__}); check the network and {again}"
    if isinstance(error, FileNotFoundError):
        place = f"https://physionet.org/content/{project}/"
        return f"physionet.org does not have {project}/{name}; see {place} for where it is"
    return f"physionet.org did not send {project}/{name} ({type(error).__name__}); check the network and {again}"
