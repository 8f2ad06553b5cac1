"""Networks of braindecode by name, such as ``network="braindecode:EEGNet"``, and their arguments as options.

Importing braindecode takes seconds and needs torch, so names, arguments and defaults are read from its source files.
An argument is an option ``MODEL_ARGUMENT``: ``EEGNet_F1`` is the argument `F1` of `EEGNet`.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

from pydantic import AfterValidator, Strict

from clops_sweep.errors import closest, listed
from clops_sweep.experiment.plugins.declarations import Declaration, Plugin
from clops_sweep.experiment.plugins.options import (
    BoolOption,
    ChoiceOption,
    FloatOption,
    IntOption,
    Option,
    option_of_kind,
)

PREFIX = "braindecode:"
VERSION = "braindecode_version"
"""Option of every network of braindecode: another version of the package is another network."""

_RANGE = (1, 8)
"""Major and minor version whose networks are known: names and arguments change with each minor version."""

INSTALL = "pip install 'clops-sweep[braindecode]'"

ACTIVATIONS = ("CELU", "ELU", "GELU", "Identity", "LeakyReLU", "Mish", "ReLU", "SELU", "SiLU", "Softplus", "Tanh")
"""Classes of `torch.nn` that an argument with a class of layers as its default may name."""

_FILLED = ("n_chans", "n_outputs", "n_times", "sfreq", "chs_info", "input_window_seconds")
"""Arguments that follow from the data set."""

_BASE = "EEGModuleMixin"
_MAKERS = "clops_sweep.learning.networks.of_braindecode"


def installed_version() -> str | None:
    """Return the version of the installed braindecode; None without one."""
    try:
        return importlib.metadata.version("braindecode")
    except importlib.metadata.PackageNotFoundError:
        return None


def names() -> list[str]:
    """Return the names of all networks in configs; empty without a braindecode of the known version."""
    if why_unavailable():
        return []
    return [PREFIX + model for model in sorted(_modules(_folder())) if _constructor(model) is not None]


def why_unavailable() -> str | None:
    """Return why no network of braindecode is available, with what to install; None if they are."""
    version = installed_version()
    if version is None or _folder() is None:
        return f"needs braindecode, which is not installed; {INSTALL}"
    if tuple(re.findall(r"\d+", version)[:2]) != tuple(map(str, _RANGE)):
        return f"needs braindecode {_RANGE[0]}.{_RANGE[1]}, and {version} is installed; {INSTALL}"
    return None


def why_unknown(name: str) -> str:
    """Return why a name with the prefix is no network, with the nearest names."""
    known = names()
    return why_unavailable() or f"not known{similar(name) or f'; known: {listed(known)}'}"


def similar(name: str) -> str:
    """Return a question about the network of braindecode that a name may mean, with prefix or without; else empty."""
    known = [network.removeprefix(PREFIX) for network in names()]
    close = closest(name.rpartition(":")[2], known)
    return f" (did you mean {PREFIX + close!r}?)" if close else ""


def plugin(name: str) -> Plugin | None:
    """Return a network by its name in configs, without importing braindecode; None if it has no such network."""
    model = name.removeprefix(PREFIX)
    if not name.startswith(PREFIX) or why_unavailable() or _constructor(model) is None:
        return None
    options = {VERSION: _version_option(), **_options(model)}
    return Plugin(f"{_MAKERS}:{model}", Declaration(options, takes_signal=True))


def network_with_option(name: str) -> str | None:
    """Return the name of the network whose option a name may be, such as ``EEGNet_F1``; None for other names."""
    if name == VERSION:
        return next(iter(names()), None)
    if not name[:1].isupper() or "_" not in name or why_unavailable():
        return None
    models = _modules(_folder())
    owners = [model for model in models if name.startswith(f"{model}_") and _constructor(model) is not None]
    return PREFIX + max(owners, key=len) if owners else None


def arguments_of(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a model among a config's options, without defaults and `layers_of`."""
    changed = _changed(model, options)
    return {name: value for name, value in changed.items() if not _is_layer(model, name)}


def layers_of(model: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments of a model that are classes of `torch.nn`, by name, without defaults."""
    changed = _changed(model, options)
    return {name: value for name, value in changed.items() if _is_layer(model, name)}


def _changed(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a config's options that differ from the defaults, by the model's argument."""
    return {
        option.removeprefix(f"{model}_"): options[option]
        for option, declared in _options(model).items()
        if option in options and options[option] != declared.default
    }


def _is_layer(model: str, argument: str) -> bool:
    return get_origin(_options(model)[f"{model}_{argument}"].annotation) is Literal


def check_version(value: str) -> str:
    """Return the version of braindecode that a config names.

    Raises:
        ValueError: another version is installed.
    """
    installed = installed_version()
    if value != installed:
        raise ValueError(
            f"{installed} is installed, and another version is another network; leave it out, or pip install "
            f"'braindecode=={value}'"
        )
    return value


def _version_option() -> Option:
    kind = Annotated[str, Strict(), AfterValidator(check_version)]
    return option_of_kind(kind, installed_version(), "version of braindecode", equal_cost=True)


def _folder() -> Path | None:
    """Return the folder of braindecode's models; the package is found without importing it."""
    spec = importlib.util.find_spec("braindecode")
    places = None if spec is None else spec.submodule_search_locations
    folder = Path(next(iter(places))) / "models" if places else None
    return folder if folder is not None and (folder / "__init__.py").is_file() else None


@cache
def _modules(folder: Path | None) -> Mapping[str, str]:
    """Return the module of each name that `braindecode.models` imports from its own modules."""
    modules: dict[str, str] = {}
    if folder is None:
        return modules
    for node in _parsed(folder / "__init__.py").body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module is not None:
            modules |= {name.name: node.module for name in node.names}
    return modules


def _constructor(model: str) -> ast.FunctionDef | None:
    """Return the constructor of a model; None if it is no public model with a class of its own."""
    folder = _folder()
    module = _modules(folder).get(model)
    if folder is None or module is None:
        return None
    return _constructors(folder / f"{module}.py").get(model)


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


@cache
def _constructors(file: Path) -> dict[str, ast.FunctionDef]:
    """Return the constructors of the models that a file defines."""
    constructors = dict[str, ast.FunctionDef]()
    models = {_BASE}
    for node in _parsed(file).body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        if not models.intersection(bases):
            continue
        models.add(node.name)
        inherited = next((constructors[base] for base in bases if base in constructors), None)
        constructor = _own_constructor(node) or inherited
        if constructor is not None:
            constructors[node.name] = constructor
    return constructors


def _own_constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return part
    return None


def _options(model: str) -> Mapping[str, Option]:
    """Return the options of a model: its arguments with a default that is a number, text, truth value or layer."""
    constructor = _constructor(model)
    assert constructor is not None
    return _options_of(model, constructor)


@cache
def _options_of(model: str, constructor: ast.FunctionDef) -> Mapping[str, Option]:
    options: dict[str, Option] = {}
    for argument, default in _arguments(constructor):
        name = argument.arg
        if name in _FILLED or name.startswith("_") or default is None:
            continue
        kind = "" if argument.annotation is None else ast.unparse(argument.annotation).strip("'\"")
        kind += " float" * name.endswith("max_norm")  # some are annotated as int, and take any number
        option = _option(default, kind, f"argument `{name}` of {model}")
        if option is not None:
            options[f"{model}_{name}"] = option
    return options


def _arguments(constructor: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield the arguments of a constructor with their defaults."""
    of = constructor.args
    positional = [*of.posonlyargs, *of.args]
    without = [None] * (len(positional) - len(of.defaults))
    yield from zip(positional, [*without, *of.defaults], strict=True)
    yield from zip(of.kwonlyargs, of.kw_defaults, strict=True)


def _option(default: ast.expr, kind: str, description: str) -> Option | None:
    """Return an argument as an option; None if its default is a sequence, or None of unknown type."""
    layer = _layer(default)
    if layer is not None:
        return ChoiceOption(layer, choices=dict.fromkeys((layer, *ACTIVATIONS)), description=description)
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return None
    if isinstance(value, bool):
        return BoolOption(value, description=description)
    if isinstance(value, float) or (isinstance(value, int | None) and re.search(r"\bfloat\b", kind)):
        return FloatOption(value, description=description)
    if isinstance(value, int) or (value is None and re.search(r"\bint\b", kind)):
        return IntOption(value, description=description)
    if value == "auto":  # a length that follows from the frames
        return None
    if isinstance(value, str) or (value is None and re.search(r"\bstr\b", kind)):
        text: Any = str | None if value is None else str
        return option_of_kind(Annotated[text, Strict()], value, description)
    return None


def _layer(default: ast.expr) -> str | None:
    """Return the name of a class that is a default, such as `nn.ELU`."""
    name = default.attr if isinstance(default, ast.Attribute) else default.id if isinstance(default, ast.Name) else ""
    return name if name[:1].isupper() else None
