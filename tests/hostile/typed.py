"""What is typed or passed: fields, options of every command, conditions, arguments from Python."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import click

from clops_sweep import RunConfig, SearchSpace, read, sweep
from clops_sweep.cli.commands import command
from clops_sweep.experiment.spaces.where import Where

from .engine import WORKER_STARTED, Case

LONG = "x" * 5000
NASTY = ["", " ", "\x1b[2J", "a\0b", "a\udcffb", "\u202e", LONG, "9" * 5000, "[" * 100_000]


class Unprintable:
    """Something whose text cannot be asked for."""

    def __repr__(self) -> str:
        raise ValueError("no text")


NO_NUMBER = [None, True, "20", "", [], {}, 1j, float("nan"), float("inf"), -float("inf"), -1, b"1", 10**5000]
NO_TEXT = [None, True, 3, 0.5, [], {}, "", "no_such", "\x1b[2J", "a\0b", "x" * 100_000]
ANYTHING = [Unprintable(), object, lambda: 3, print, {1, 2}, ...]

KINDS: Mapping[str, tuple[Sequence[Any], Sequence[str]]] = {
    "share": (
        [*NO_NUMBER, 0, 1.5, -0.5],
        ["storage_fraction", "acquisition_fraction", "memory_fraction"],
    ),
    "whole number": (
        [*NO_NUMBER, 0, 20.5, 2**31, 2**63, "0x10"],
        ["mc_samples", "acquire_every", "epochs_per_task", "batch_size"],
    ),
    "any whole number": ([*NO_NUMBER, 0, 20.5], ["agem_batch_size"]),
    "positive number": (
        [*NO_NUMBER, 0, -1e-300],
        ["learning_rate", "beta_learning_rate", "perturbation_std", "replay_ratio", "si_damping", "lwf_temperature"],
    ),
    "number from 0": (
        [*NO_NUMBER, -1e-300],
        ["beta_penalty", "ewc_strength", "si_strength", "mas_strength", "lwf_strength", "derpp_alpha", "derpp_beta"],
    ),
    "share or 0": ([*NO_NUMBER, 1.01], ["ewc_decay"]),
    "seed": ([*(it for it in NO_NUMBER if it is not None), 0.5, 2**32, 2**64], ["seed", "split_seed", "weight_seed"]),
    "truth": ([None, 0, 1, "true", "yes", "", [], 0.0, float("nan")], ["weight_replay", "er_acquire", "ewc_online"]),
    "name": (
        NO_TEXT,
        [
            *(
                "scenario",
                "dataset",
                "strategy",
                "acquisition",
                "storage_function",
                "storage_order",
                "network",
                "leads",
            ),
            *("normalize", "memory_division", "er_storage_order"),
        ],
    ),
    "order": (
        [None, True, "", "3", "paper", [], (), {}, {0, 1}, [0, 0], [1, 2], [0.5], [None], ["0", "1"], [-1, 0], -1]
        + [2**32, 1.5, [[0]], b"sequential", [10**5000], float("nan")],
        ["task_order"],
    ),
    "classes": (
        [True, 3, "", "AFIB", [], [[]], [0, 1], [[0], []], [[0, 0]], [[0, 1], [1, 2]], [[0, 1], [2]], [[None]], {}]
        + [[[0.5, 1]], [[True, False]], [{"a": 1}], [[10**5000, 1]], [[[0]]]],
        ["task_classes"],
    ),
    "domain": ([None, True, 3, []], ["domain"]),
}
"""By kind of field: values that none of these fields may have, and the fields."""

WRONG_FOR_THE_DATA = {
    "task_order": [list(range(7)), [1, 0]],
    "task_classes": [[[-1, 0]], [["\x1b", "b"]], [["", "a"]], [[0, 12]], [["no_such", 1]], [["x" * 5000, 1]]],
    "domain": ["", "\x1b[2J", "a b", "no_such", "x" * 5000],
}
"""Values that only the data set, or what is known of it, can tell from right ones."""

OF_PLUGINS = {
    "memory_": "er", "er_": "er", "agem_": "agem", "derpp_": "derpp", "ewc_": "ewc", "si_": "si", "mas_": "mas",
    "lwf_": "lwf",
}  # fmt: skip


def _others(name: str) -> dict[str, Any]:
    """What else a config has where a field matters."""
    of_plugin = {"strategy": strategy for prefix, strategy in OF_PLUGINS.items() if name.startswith(prefix)}
    return of_plugin | ({"scenario": "domain_il"} if name == "domain" else {})


def _wrong() -> Iterator[tuple[str, Any]]:
    for values, names in KINDS.values():
        yield from product(names, [*values, *ANYTHING])


def shown(value: Any) -> str:
    """A value for the list, on one short line."""
    if callable(value):
        return f"a {type(value).__name__}"
    try:
        return ascii(value)[:40]
    except ValueError:
        return f"a {type(value).__name__}"


def fields() -> Iterator[Case]:
    """Every field of a config with every wrong value of its kind."""
    for name, value in _wrong():
        settings = {**_others(name), name: value}
        yield Case(f"RunConfig({name}={shown(value)})", call=lambda settings=settings: RunConfig(**settings))


def settings() -> Iterator[Case]:
    """The same by --set, as far as it can be written there, and what does not go with the data."""
    of_data = [(name, value) for name, values in WRONG_FOR_THE_DATA.items() for value in values]
    for name, value in [*_wrong(), *of_data]:
        try:
            text = json.dumps(value)
        except (TypeError, ValueError):
            continue
        if name in ("seed", "storage_fraction") or (len(text) > 100 and (name, value) not in of_data):
            continue
        others = [part for it in _others(name).items() for part in ("--set", f"{it[0]}={it[1]}")]
        yield Case(f"--set {name}={text}", ("plan", "space.py", *others, "--set", f"{name}={text}"))
    for text in ["=", "==", "=1", "batch_size", "batch_size = 3", *NASTY, *(f"{it}=1" for it in NASTY)]:
        yield Case(f"--set {ascii(text)[:40]}", ("plan", "space.py", "--set", text))


RESULTS = [
    *("", " ", "a\0b", LONG, "a\udcffb", "gopher://x", "file://x", "s3://", "~nobody-of-this-name/x", "space.py"),
    *("/proc/results", "results/runs", "/dev/null", "nowhere", "http://x/y", "s3:results", "space.py/deeper"),
]
FILES = ["", " ", "a\0b", LONG, "nothing.py", ".", "/dev/null", "raises.py", "empty.py", "binary.py", "results"]
NAMES = [*NASTY, "zzz", "../x", "*", "/etc/passwd", "A" * 24, "-"]
VALUES: Mapping[str, Sequence[str]] = {
    "--results": RESULTS,
    "--data-root": ["", " ", "a\0b"],
    "--prepared-root": ["", " ", "a\0b"],
    "--where": [
        "",
        " ",
        "seed",
        "seed =",
        "(",
        "x == 1",
        "seed.real == 1",
        "a\0b",
        "\udcff",
        "1" * 5000,
        "not " * 3000,
    ],
    "--plugins": [it for it in FILES if it != "empty.py"],
    "--axes": ["", ",", "a", "a,b", "a,b,c", "storage_fraction,storage_fraction", "\x1b,b", LONG],
    "--data-hash": ["", " ", "zz", "\x1b", LONG],
    "--output": ["", " ", "a\0b", "space.py", "results", "results/runs", ".", "/proc/x", LONG, "raises.py/x"],
    "--host": ["", " ", "nowhere.invalid", "256.1.1.1", "a\0b", "\x1b", LONG, "http://x"],
    "--address": ["", " ", "nowhere", "a:b", "127.0.0.1:1", "127.0.0.1:99999", "\x1b:1", LONG, "ray://x"],
    "--lockstep": ["", "0", "-1", "1.5", "two", "AUTO", "9" * 5000, "\x1b"],
    "--cpus-per-trial": ["", "0", "-1", "nan", "inf", "x", "1e9", "1,5"],
    "--gpus-per-trial": ["", "-1", "nan", "inf", "x", "1.5", "1e-9"],
    "--device": ["", "GPU", "cuda", "auto,gpu", "\x1b", LONG],
    "--nice": ["", "-1", "20", "1.5", "x", "nan"],
    "--epoch-timeout": ["", "0", "-1", "nan", "inf", "x", "1s"],
    "--tolerance": ["", "-1", "nan", "inf", "x"],
    "--observe": ["", " ", "nobody", ":", "tensorboard:", "mlflow:gopher://x", "\x1b", "a\0b", LONG],
    "--from": ["", "nothing", "../quickstart", "\x1b", LONG],
    "--option": ["", "=", "=1", "window_seconds", "no_such=1", "\x1b=1"],
    "--set": [],
}
"""Wrong values by option; of the others, by type."""

NUMBERS = ["", " ", "x", "-1", "1.5", "1e3", "nan", "0x10", "9" * 5000]
ARGUMENTS: Mapping[str, list[str]] = {
    **dict.fromkeys(("plan", "launch", "report", "status", "claims", "dashboard"), ["space.py"]),
    **dict.fromkeys(("show", "rerun", "logs"), ["a" * 24]),
    **dict.fromkeys(("prepare", "counts", "verify", "download"), ["mitbih"]),
    "new": ["mine.py"],
}
"""What a command takes beside options, where it is right."""

CONTRADICTIONS = [
    "plan", "launch", "show", "rerun", "logs", "new", "data prepare", "data verify", "data counts", "data download",
    "plan space.py space.py", "plan space.py nothing.py", "launch space.py raises.py", "report --limit 3",
    "report --seeds 3", "report --set batch_size=3", "report --where seed==0", "claims --limit 3", "claims --seeds 2",
    "claims --where seed==0", "claims --set batch_size=3", "status --seeds 3", "status --set batch_size=3",
    "status --limit 2", "status --where seed==0", "dashboard --limit 3", "dashboard --seeds 2", "check more",
    "check more", "doctor more", "data list more", "plan space.py --dry-run", "show", "show a b", "rerun a b",
    "new space.py", "new mine.txt", "new deeper/mine.py", "new mine.py more.py", "nothing", "plan --version",
    "data nothing", "--no-such", "plan space.py --no-such", "plan space.py --seeds", "plan space.py --json=1",
    "report space.py --axes storage_fraction,seed", "plan space.py --set batch_size=3 --set batch_size=4",
    "plan space.py --set storage_fraction=1", "plan space.py --set seed=1", "plan space.py --set dataset=mitbih",
    "plan space.py --where seed==77", "plan search.py --where seed==0", "plan search.py --set learning_rate=1",
    "rerun zzz --verify", "rerun aaaaaaaaaaaaaaaaaaaaaaaa --device tpu", "data prepare mitbih",
    "data prepare mitbih --data-root nowhere", "data verify mitbih --data-root nowhere", "data counts mitbih",
    "data prepare nothing", "data verify nothing", "data counts nothing", "data download nothing --data-root .",
    "data download chapman --data-root .", "data download synthetic --data-root .", "data download mitbih",
]  # fmt: skip
"""Commands whose parts do not go together, or that lack one."""

UNHARMED = {"plan space.py --set dataset=mitbih": (0, 2)}


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            yield from _commands(found, (*path, name))
        elif found is not None:
            yield (*path, name), found


def options() -> Iterator[Case]:
    """Every option of every command with every wrong value of its kind, and what does not go together."""
    for path, found in _commands(command):
        right = ARGUMENTS.get(path[-1], [])
        for parameter in found.params:
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                name = parameter.opts[-1]
                of_type = NUMBERS if isinstance(parameter.type, click.types.IntParamType) else ["", "no_such", "\x1b"]
                for value in VALUES.get(name, of_type):
                    text = f"{' '.join(path)} {name} {ascii(value)[:40]}"
                    yield Case(text, (*path, *right, name, value), fine=_fine(path, name, value))
            elif isinstance(parameter, click.Argument):
                for value in FILES if parameter.name == "files" else NAMES:
                    if parameter.nargs != -1 or value:
                        yield Case(f"{' '.join(path)} {ascii(value)[:40]}", (*path, "--", value))
    for text in CONTRADICTIONS:
        yield Case(text, text.split(), fine=UNHARMED.get(text, (2,)))


def _fine(path: Sequence[str], name: str, value: str) -> tuple[int, ...]:
    """A store that is not there yet is empty, and made by a launch; `doctor` says what is wrong with a place."""
    if name == "--results":
        if path[-1] == "doctor" or (value == "results/runs" and path[-1] != "launch"):
            return (0, 2)
        if value in ("nowhere", "s3:results", "/proc/results") and path[-1] in ("plan", "status", "launch"):
            return (0, 2, WORKER_STARTED)
    return (0, 2) if (*path, name) == ("plan", "--cpus-per-trial") else (2,)


CONDITIONS = [
    "seed", "seed + 1", "'a'", "1", "None", "seed is None", "seed ** 2 == 1", "seed << 3 == 1", "seed @ 2 == 1",
    "strategy < 3", "strategy + 'x' == 'y'", "strategy * 10 == 'x'", "[1] * 10**9 == [1]", "(1,) + (2,) == 3",
    "seed / 0 == 1", "seed // 0 == 1", "seed % 0 == 1", "0.0 / 0 == 1", "seed in 3", "3 in strategy", "'a' in seed",
    "strategy.upper() == 'X'", "strategy[0] == 'c'", "len(strategy) == 3", "__import__('os') == 1", "f'{seed}' == '3'",
    "b'x' == strategy", "{1: 2} == 3", "{1, 2} == 3", "[x for x in [1]] == [1]", "(lambda: 1)() == 1", "seed if 1 else 2",
    "(seed := 3) == 3", "seed == 3; seed == 4", "seed == 3\nseed == 4", "import os", "seed =", "= 3", "seed == ",
    "seed == 3 and", "*seed == 3", "seed == ...", "1e999 == seed or seed", "1j == seed", "await seed", "yield seed",
    "not seed", "seed and True", "~seed", "-strategy == 1", "+strategy == 1", "seed > 'a'", "task_order > 3",
    "weight_replay + strategy == 1", "no_such == 3", "batch_sise == 3",
    "seed == 0x", "0777 == seed", "seed == 'unterminated", "\\ == 3", "seed == 3)", "((((((seed == 3)", "",
    f"{'9' * 4000} * {'9' * 4000} == seed or seed", f"({'9' * 4000}) ** 3 == seed", "9" * 4301 + " == seed",
    f"{' * '.join(['9' * 4000] * 2)} / 3 == 1", f"{' * '.join(['9' * 900] * 10)} + 0.5 == 1", f"1e308 * {'9' * 400} == seed",
    f"({' * '.join(['9' * 4000] * 2)}) and True", "(" * 300 + "seed" + ")" * 300 + " == 3", "not " * 2400 + "True",
    "-" * 9000 + "seed == 1", "~" * 9000 + "weight_replay", "[" * 200 + "]" * 200 + " == seed or seed",
    "seed == 1 or " * 700 + "seed", "seed + " * 1400 + "'a' == 1", "x" * 9000 + " == 1", LONG * 3,
    "strategy == '\udcff'", "strategy == '\x1b' or seed", "a\0b", "\u202eseed == 3 or seed", "\uff53eed =\u037e 3",
]  # fmt: skip


def conditions() -> Iterator[Case]:
    """Conditions of --where that are none, by the command and by `sweep`."""
    config = RunConfig()
    for text in CONDITIONS:
        name = ascii(text)[:60]
        yield Case(f"plan --where {name}", ("plan", "space.py", f"--where={text}"))
        yield Case(f"Where({name})", call=lambda text=text: Where(text)(config))


def _space() -> SearchSpace:
    return SearchSpace("s", RunConfig(strategy="finetune", epochs_per_task=1), seeds=[0])


SWEEP: Mapping[str, Sequence[Any]] = {
    "space": [None, 3, [], {}, [3], "nothing.py", "", "raises.py", b"space.py", RunConfig(), SearchSpace, [[]], "a\0b"],
    "results": [None, 3, "", " ", "a\0b", LONG, [], b"results", True, "gopher://x", "space.py", {}],
    "data_root": [3, "", "a\0b", [], {}, True, b"x"],
    "prepared_root": [3, "a\0b", [], {}, True, b"x", "space.py"],
    "settings": [3, "batch_size=3", [], [3], {"batch_sise": 3}, {3: 3}, {"batch_size": "x"}, {None: 1}, {"seed": 1}],
    "seeds": [0, -1, 1.5, "3", True, [], range(2), float("nan"), 10**9, {}],
    "limit": [0, -1, 1.5, "3", True, [], float("nan"), {}],
    "where": ["", " ", "seed", 3, True, [], lambda config: True, "no_such == 1", b"seed == 0"],
    "address": ["", " ", 3, "nowhere", [], True, "a:b", b"auto", "\x1b:1"],
    "cpus_per_trial": [0, -1, 1e9, float("nan"), float("inf"), "1", None, [], 1j],
    "gpus_per_trial": [-1, 1.5, float("nan"), float("inf"), "1", None, [], 1e-9],
    "device": ["", "GPU", "cuda", 1, True, None, [], b"cpu"],
    "nice": [-1, 20, 1.5, "1", None, [], float("nan")],
    "lockstep": [0, -1, 1.5, "1", "AUTO", [], float("nan")],
    "max_retries": [-1, 1.5, "1", None, [], float("nan"), float("inf")],
    "checkpoint_every": [-1, 1.5, "1", None, [], float("nan")],
    "epoch_timeout": [0, -1, float("nan"), float("inf"), "1", [], {}],
    "retry_failed": [3, "no", "failed"],
    "keep": ["", "predictions ", ["x"], 3, None, [3], {"predictions": 1, "x": 2}, True],
    "observe": ["", ["nobody"], 3, None, [3], [""], [None], True, ["\x1b"], [":"], "tensorboard"],
}
READ: Mapping[str, Sequence[Any]] = {
    "results": [None, 3, "", "a\0b", LONG, [], "nowhere", "space.py", "gopher://x", "results/runs", b"results"],
    "table": [None, 3, "", "run", [], {}, "../runs", "a\0b", True, b"runs"],
    "run_ids": [3, [3], [None], True, b"a", [["a"]]],
    "columns": [3, ["no_such"], [3], [None], True, [["auc"]], ["\x1b"], b"auc", [LONG]],
}


def from_python() -> Iterator[Case]:
    """Every argument of `sweep` and `read` with wrong values."""
    for name, values in SWEEP.items():
        for value in values:

            def call(name: str = name, value: Any = value) -> object:
                return sweep(**{"space": _space(), "results": "fresh", name: value})

            yield Case(f"sweep({name}={shown(value)})", call=call)
    for name, values in READ.items():
        for value in values:
            yield Case(f"read({name}={shown(value)})", call=lambda name=name, value=value: read(**{name: value}))
    for name, values in SPACES.items():
        for value in values:

            def make(name: str = name, value: Any = value) -> object:
                return SearchSpace(**{"name": "s", "base": RunConfig(), name: value})

            yield Case(f"SearchSpace({name}={shown(value)})", call=make)


SPACES: Mapping[str, Sequence[Any]] = {
    "name": [None, 3, "", "a/b", ".x", "x" * 101, True, [], b"s", "a\0b", Unprintable()],
    "base": [None, 3, {}, [], RunConfig, "base", Unprintable()],
    "axes": [3, [], "abc", {3: [1]}, {None: [1]}, {"": {"a": {}}}, {"mc_samples": 5}, {"mc_samples": []}]
    + [{"mc_samples": [5, 5]}, {"mc_samples": [5, "x"]}, {"mc_samples": "abc"}, {"mc_sample": [5]}, {"seed": [1, 2]}]
    + [{"v": {}}, {"v": {"a": 3}}, {"v": {"a": {"no_such": 1}}}, {"v": {"a": {"seed": 1}}}, {3.5: {"a": {}}}]
    + [{"v": {"a": {"mc_samples": 1}}, "mc_samples": [1, 2]}, {"mc_samples": {"a": {}}}, {"mc_samples": {1, 2}}]
    + [{"mc_samples": range(1, 10**9)}, {"mc_samples": (it for it in [1])}, {"mc_samples": [Unprintable()]}]
    + [{"strategy": ["clops", None]}, {"strategy": ["clops", ["mir"]]}, {"mc_samples": [float("nan")]}],
    "seeds": [None, 3, "abc", [], [0, 0], [-1], [0.5], ["1"], [None], [2**32], {0, 1}, range(0), range(10**9), [True]]
    + [[10**5000], [float("nan")], Unprintable()],
    "where": [3, "seed == 0", [], Unprintable(), lambda: True, lambda config: 1, lambda config: None, lambda c: 1 / 0]
    + [lambda config: "yes", lambda config: config.no_such, lambda config: exit(3), lambda config: float("nan")],
    "resolve": [3, "x", lambda config: 1 / 0],
    "search": [3, "x", [], {}, object()],
}
