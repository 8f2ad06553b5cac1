"""How plug-ins get from the driver to its workers: each packed by itself, so that none can take others with it."""

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
    """A registered member and what it declares, pickled, with all that the workers may not have themselves.

    Attributes:
        what: the member, for messages.
        pickled: a `Plugin`.
    """

    what: str
    pickled: bytes

    def unpacked(self) -> Plugin:
        """The plug-in; if it cannot be loaded, one that fails every run that uses it with the reason."""
        try:
            plugin = cloudpickle.loads(self.pickled)
            if not (isinstance(plugin, Plugin) and callable(plugin.member)):
                raise TypeError("what arrives there cannot be called")
        except OF_USERS as error:
            return Plugin(Unusable(f"{self.what} cannot be taken up by workers ({reason(error)})"), NOTHING)
        return plugin


class Unusable:
    """Placeholder for a plug-in that a worker could not load."""

    joint = False

    def __init__(self, why: str) -> None:
        self._why = why

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Fails.

        Raises:
            RuntimeError: says why.
        """
        raise RuntimeError(self._why)


def packed_plugins() -> Mapping[str, Mapping[str, PackedPlugin]]:
    """What has been registered beside the built-in members, by registry and name.

    Raises:
        UsageError: one of them cannot be pickled.
    """
    return {
        field: {name: packed(f"{registry.kind} {name!r}", plugin) for name, plugin in registry.added.items()}
        for field, registry in REGISTRIES.items()
    }


def packed(what: str, plugin: Plugin) -> PackedPlugin:
    """A plug-in as workers can take it up.

    Raises:
        UsageError: it cannot be pickled.
    """
    file = io.BytesIO()
    try:
        _Packer(file).dump(plugin)  # type: ignore[no-untyped-call]
    except OF_USERS as error:
        raise UsageError(
            f"{what} cannot be handed to workers ({reason(error)}); make what it holds on to inside of it, when it is "
            "called"
        ) from None
    return PackedPlugin(what, file.getvalue())


class _Packer(cloudpickle.CloudPickler):
    """Pickle modules by value that workers cannot import by name, such as those beside a search-space file."""

    def reducer_override(self, obj: Any) -> Any:
        """How an object is pickled that is not to be pickled as usual."""
        if isinstance(obj, ModuleType) and sys.modules.get(obj.__name__) is not obj:
            content = {name: value for name, value in vars(obj).items() if name not in _LEFT_OUT}
            return ModuleType, (obj.__name__,), content, None, None, _fill
        return super().reducer_override(obj)  # type: ignore[no-untyped-call]


def _fill(module: ModuleType, content: dict[str, Any]) -> None:
    vars(module).update(content)
