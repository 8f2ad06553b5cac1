"""Transfer of plug-ins from the driver to workers: each is pickled separately, so that one cannot break others."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray import cloudpickle

from clops_sweep.errors import OF_USERS, UsageError, reason
from clops_sweep.experiment.plugins.declarations import NOTHING
from clops_sweep.experiment.plugins.registry import REGISTRIES, Plugin

_LEFT_OUT = ("__builtins__", "__cached__", "__loader__", "__spec__")


@dataclass(frozen=True)
class PackedPlugin:
    """A pickled plug-in with its declaration and the code that workers may lack.

    Attributes:
        what: name of the plug-in, for messages.
        pickled: a pickled `Plugin`.
    """

    what: str
    pickled: bytes

    def unpacked(self) -> Plugin:
        """Return the plug-in; if it cannot be loaded, one that fails every run with the reason."""
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
    file = io.BytesIO()
    try:
        _Packer(file).dump(plugin)  # type: ignore[no-untyped-call]
    except OF_USERS as error:
        raise UsageError(
            f"{what} cannot be sent to workers ({reason(error)}); create the objects that it uses inside of it, when "
            "it is called"
        ) from None
    return PackedPlugin(what, file.getvalue())


class _Packer(cloudpickle.CloudPickler):
    """Pickle modules by value that workers cannot import by name, such as those beside a search-space file."""

    def reducer_override(self, obj: Any) -> Any:
        """Pickle some modules by value."""
        if isinstance(obj, ModuleType) and sys.modules.get(obj.__name__) is not obj:
            content = {name: value for name, value in vars(obj).items() if name not in _LEFT_OUT}
            return ModuleType, (obj.__name__,), content, None, None, _fill
        return super().reducer_override(obj)  # type: ignore[no-untyped-call]


def _fill(module: ModuleType, content: dict[str, Any]) -> None:
    vars(module).update(content)
