"""Transfer of plug-ins from the driver to workers: each is pickled separately, so that one cannot break others."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray import cloudpickle

from clops_sweep.data.local_code import is_installed
from clops_sweep.errors import OF_USERS, UsageError, reason
from clops_sweep.experiment.plugins.declarations import NOTHING, Plugin
from clops_sweep.experiment.plugins.registry import REGISTRIES
from clops_sweep.experiment.spaces.local_modules import local_modules

_LEFT_OUT = ("__builtins__", "__cached__", "__loader__", "__spec__")


@dataclass(frozen=True)
class PackedPlugin:
    """A pickled plug-in with its declaration and the code that workers may lack.

    Attributes:
        what: name of the plug-in, for messages.
        pickled: a pickled `Plugin`.
        folders: folders of `sys.path`, for functions that import a local module when they are called.
    """

    what: str
    pickled: bytes
    folders: tuple[str, ...]

    def unpacked(self) -> Plugin:
        """Return the plug-in; if it cannot be loaded, one that fails every run with the reason."""
        sys.path.extend(folder for folder in self.folders if folder not in sys.path)
        try:
            plugin = cloudpickle.loads(self.pickled)
            if not (isinstance(plugin, Plugin) and callable(plugin.member)):
                raise TypeError("what arrives there cannot be called")
        except OF_USERS as error:
            return Plugin(Unusable(f"{self.what} cannot be taken up by workers ({reason(error)})"), NOTHING)
        return plugin


class Unusable:
    """Replaces a plug-in that a worker could not load."""

    joint = False

    def __init__(self, why: str) -> None:
        self._why = why

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Raise the error.

        Raises:
            RuntimeError: always, with the reason.
        """
        raise RuntimeError(self._why)


def packed_plugins() -> Mapping[str, Mapping[str, PackedPlugin]]:
    """Return the custom plug-ins, by registry and name.

    Raises:
        UsageError: one of them cannot be pickled.
    """
    return {
        field: {name: packed(f"{registry.kind} {name!r}", plugin) for name, plugin in registry.added.items()}
        for field, registry in REGISTRIES.items()
    }


def packed(what: str, plugin: Plugin) -> PackedPlugin:
    """Pickle a plug-in for workers.

    Raises:
        UsageError: it cannot be pickled.
    """
    folders = tuple(os.path.abspath(folder) for folder in sys.path if not is_installed(Path(folder).resolve()))
    local = local_modules()
    refused = None
    for by_value in (local, ()):  # what cannot be pickled by value, such as a lock, can on machines that have the file
        file = io.BytesIO()
        try:
            with _pickled_by_value(by_value):
                _Packer(file, by_value).dump(plugin)  # type: ignore[no-untyped-call]
        except OF_USERS as error:
            refused = refused or reason(error)
        else:
            return PackedPlugin(what, file.getvalue(), folders)
    raise UsageError(
        f"{what} cannot be sent to workers ({refused}); create the objects that it uses inside of it, when it is called"
    )


@contextmanager
def _pickled_by_value(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Pickle functions and classes of some modules by value in the block."""
    by_value_already = cloudpickle.list_registry_pickle_by_value()
    asked = [module for module in modules if module.__name__ not in by_value_already]
    for module in asked:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in asked:
            cloudpickle.unregister_pickle_by_value(module)


class _Packer(cloudpickle.CloudPickler):
    """Pickle modules by value that workers cannot import by name, such as those beside a search-space file."""

    def __init__(self, file: io.BytesIO, by_value: Sequence[ModuleType]) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._by_value = by_value

    def reducer_override(self, obj: Any) -> Any:
        """Pickle some modules by value."""
        if isinstance(obj, ModuleType) and (sys.modules.get(obj.__name__) is not obj or obj in self._by_value):
            content = {name: value for name, value in vars(obj).items() if name not in _LEFT_OUT}
            return ModuleType, (obj.__name__,), content, None, None, _fill
        return super().reducer_override(obj)  # type: ignore[no-untyped-call]


def _fill(module: ModuleType, content: dict[str, Any]) -> None:
    vars(module).update(content)
