"""Results of trying the networks of libraries, kept beside the prepared data, so that each is tried once.

Trying one imports PyTorch and the library, which takes seconds. Custom networks are tried each time, because their code
may have changed.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from clops_sweep import native
from clops_sweep.data.files.folder import make_folder, write_file
from clops_sweep.data.files.hashes import hash_of
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.network_input import is_tried
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.tasks import with_tasks
from clops_sweep.machine import installed_version

if TYPE_CHECKING:
    from clops_sweep.data.catalog import DataKey
    from clops_sweep.data.frames import FrameSet

_FOLDER = ".networks"
_LONGEST = 2**16
"""Most bytes of a kept text."""

_PACKAGES = ("torch", "torchaudio", "mne", "numpy")
"""Packages, besides the library, on whose version a result may depend."""


@dataclass(frozen=True)
class TriedNetworks:
    """The checks of networks before a launch, which remember those of libraries.

    Attributes:
        root: folder of prepared data sets. If it is not writable, nothing is remembered.
    """

    root: Path

    def check(
        self, configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet], *, keep_models: bool
    ) -> list[str]:
        """As `check_networks`, whose checks of a library's network are skipped if they passed before.

        Raises:
            UsageError: a network cannot be trained, or not be stored.
        """
        others = [config for config in configs if not _is_remembered(config)]
        texts = []
        if any(map(is_tried, others)):  # else this process does not need PyTorch
            texts.append(_checked(others, frames, keep_models))
        for facts, config in _distinct(configs, frames).items():
            computed = partial(_checked, [config], frames, keep_models)
            texts.append(self._kept(f"checks, {keep_models}, {facts}", computed))
        return list(dict.fromkeys("".join(texts).splitlines()))

    def told(self, configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet]) -> list[str]:
        """As `networks_told`, whose sentences about a library's network are kept."""
        others = [config for config in configs if not _is_remembered(config) and NETWORKS.is_foreign(config.network)]
        texts = [_sentences(others, frames)] if others else []
        for facts, config in _distinct(configs, frames).items():
            texts.append(self._kept(f"kernels, {facts}", partial(_sentences, [config], frames)))
        return list(dict.fromkeys("".join(texts).splitlines()))

    def _kept(self, facts: str, computed: Callable[[], str]) -> str:
        """Return the text that is kept for some facts; without one, it is computed and written."""
        file = self.root / _FOLDER / hash_of(facts=facts, code=_code_of_checks())
        with suppress(OSError, UsageError, UnicodeDecodeError), open_regular(file, _LONGEST) as kept:
            return kept.read().decode()
        text = computed()
        with suppress(OSError):  # such as a root that others share and this user only reads
            make_folder(file.parent)
            write_file(file, text.encode())
        return text


def _checked(configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet], keep_models: bool) -> str:
    """Check networks; return the sentences of `check_networks`, a line each."""
    from clops_sweep.learning.networks.module_probe import check_networks

    doubts = check_networks(configs, frames, keep_models=keep_models)
    return "".join(f"{sentence}\n" for sentence in doubts)


def _sentences(configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet]) -> str:
    """Return the sentences of `networks_told`, a line each."""
    from clops_sweep.learning.lowering.told import networks_told

    return "".join(f"{sentence}\n" for sentence in networks_told(configs, frames))


def _is_remembered(config: RunConfig) -> bool:
    """Return whether a config has a library's network, and no other code than that of installed packages."""
    of_library = NETWORKS.is_foreign(config.network) and not NETWORKS.is_custom(config.network)
    return of_library and config.encoder is None and not STRATEGIES.is_custom(config.strategy)


def _distinct(configs: Iterable[RunConfig], frames: Mapping[DataKey, FrameSet]) -> dict[str, RunConfig]:
    """Return a config for each choice of what the results depend on, by these facts as text."""
    distinct = dict[str, RunConfig]()
    for config, scenario in with_tasks(filter(_is_remembered, configs), frames):
        signals = frames[config.data_key]
        shape = signals.channels, signals.samples, signals.frame_seconds, signals.lead_names, signals.single_leads
        settings = config.network, config.network_options, config.strategy, config.batch_size, config.precision
        distinct.setdefault(repr((*settings, *shape, scenario.outputs)), config)
    return distinct


@cache
def _code_of_checks() -> str:
    """Return a hash of what the checks run: packages, kernels, and the sources of networks and methods."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        digest.update(f"{package} {installed_version(package)}\n".encode())
    digest.update(f"{platform.python_version()} {native.chosen_for_programs()}\n".encode())
    for source in sorted(Path(__file__).parents[1].glob("learning/**/*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
