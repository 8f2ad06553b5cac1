"""Download openly available data sets from PhysioNet, file by file with pooch.

The publisher's SHA256SUMS.txt lists the files: complete files are skipped without a request, all others are downloaded.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.checksums import SUMS, published_sums
from clops_sweep.data.files.folder import REMEDIES, one_sentence
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.sets.named import data_set
from clops_sweep.errors import UsageError

SERVER: Final = "https://physionet.org/files/"

_CONNECTIONS: Final = 2
"""Simultaneous downloads, so as not to overload the server."""
RETRIES: Final = 2
"""Repeated requests for a file; a server fails now and then over ten thousands of requests."""
_SILENCE: Final = 60.0
"""Seconds without an answer after which the server counts as unreachable."""


@dataclass(frozen=True)
class ProjectFiles:
    """The files of a version of a PhysioNet project whose names match `wanted`; they keep their names in `folder`."""

    project: str
    folder: str
    wanted: str


_RECORDS: Final = r"RECORDS|LICENSE\.txt|\d+\.(hea|dat|atr)"
_MITDB: Final = ProjectFiles("mitdb/1.0.0", "mitdb", _RECORDS)
_VFDB: Final = ProjectFiles("vfdb/1.0.0", "vfdb", _RECORDS)

_DOWNLOADS: Final[Mapping[str, Sequence[ProjectFiles]]] = {
    "mitbih": (_MITDB,),
    "vfdb": (_VFDB,),
    "mitbih_vfdb": (_MITDB, _VFDB),
    "ptbxl": (ProjectFiles("ptb-xl/1.0.3", "ptbxl", r"LICENSE\.txt|\w+\.csv|records500/\d+/\w+\.(hea|dat)"),),
    "physionet2020": (
        ProjectFiles("challenge-2020/1.0.2", "challenge-2020", r"LICENSE\.txt|training/cpsc_2018/\w+/\w+\.(hea|mat)"),
    ),
}


def download(name: str, data_root: Path, progress: bool = False) -> list[Path]:
    """Download a data set into its folders under `data_root`, and return those folders.

    Raises:
        UsageError: the data set is not openly available (the message says where to get it), PhysioNet cannot be
            reached, or a folder cannot be written.
    """
    if name not in _DOWNLOADS:
        info = DATASETS[data_set(name).name]
        if not info.folders:
            raise UsageError(f"{name} is generated, not downloaded; run 'clops-sweep data prepare {name}'")
        raise UsageError(
            f"{name} cannot be downloaded openly ({info.licence}); get it from {info.source} and put it into "
            f"{info.folders[0]}/ under the data root"
        )
    for part in _DOWNLOADS[name]:
        _fetch(part, data_root / part.folder, progress)
    return [data_root / part.folder for part in _DOWNLOADS[name]]


def _fetch(part: ProjectFiles, folder: Path, progress: bool) -> None:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    with one_sentence(folder):
        folder.mkdir(parents=True, exist_ok=True)
    server = pooch.create(folder, f"{SERVER}{part.project}/", registry={SUMS: None}, retry_if_failed=RETRIES)
    get = partial(_get, server, pooch.HTTPDownloader(timeout=_SILENCE, chunk_size=2**16), part.project)
    get(SUMS)
    sums = published_sums(folder)
    wanted = [name for name in sums if re.fullmatch(part.wanted, name)]
    if not wanted:
        (folder / SUMS).unlink()
        raise UsageError(f"{folder / SUMS}: lists no file of {part.project}; check the network and download it again")
    server.registry |= sums
    with one_sentence(folder):
        for parent in {(folder / name).parent for name in wanted}:  # two connections of pooch would both make it
            parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_CONNECTIONS) as pool:  # the first failure stops the rest
        list(with_progress(pool.map(get, wanted), len(wanted), f"downloading {part.folder}", progress))


def _get(server: Any, downloader: Any, project: str, name: str) -> None:
    """Download a file, unless it is there with the published SHA-256."""
    path, page = server.abspath / name, f"https://physionet.org/content/{project}/"
    again = "check the network and run the same command again, it goes on where it stopped"
    try:
        server.fetch(name, processor=_readable, downloader=downloader)
    except ValueError:
        raise UsageError(
            f"{path}: the received file does not have the published SHA-256; download it again later"
        ) from None
    except OSError as error:  # of the disk, or of requests, whose errors have no number
        kinds, what = {kind.__name__ for kind in type(error).__mro__}, type(error).__name__
        number = errno.EACCES if isinstance(error, PermissionError) else error.errno
        if number in REMEDIES:
            why = f"{path}: {REMEDIES[number]}"
        elif kinds & {"ConnectionError", "Timeout"}:
            why = f"physionet.org cannot be reached ({what}); {again}"
        elif getattr(getattr(error, "response", None), "status_code", 0) == HTTPStatus.NOT_FOUND:
            why = f"physionet.org does not have {project}/{name}; see {page} for where it is"
        else:
            why = f"physionet.org did not send {project}/{name} ({what}); {again}"
        raise UsageError(why) from None


def _readable(path: str, action: str, server: Any) -> None:
    """Let others on the machine read a new file, which pooch makes for its owner alone."""
    if action != "fetch":
        os.chmod(path, 0o644)
