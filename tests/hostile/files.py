"""What is written in a search-space file: code that does what it should not, names, searches, declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from .engine import WORKER_STARTED, Case
from .place import HEAD
from .typed import shown

SETUP = """
import asyncio, builtins, gc, os, resource, signal, sys, threading, warnings
from clops_sweep.errors import UsageError
class Own(BaseException):
    pass
class Mute(Exception):
    def __str__(self):
        raise ValueError
    __repr__ = __str__
def deeper():
    deeper()
"""

ENDS = [
    "raise ValueError('two\\nlines')", "raise SystemExit", "raise SystemExit(0)", "raise SystemExit('words')", "sys.exit(3)",
    "exit()", "quit(2)", "raise GeneratorExit", "raise StopIteration", "raise Own('x')", "raise Own", "raise Mute",
    "raise BaseExceptionGroup('several', [Own(), ValueError('x')])", "raise ExceptionGroup('several', [Mute()])",
    "raise MemoryError", "deeper()", "raise ValueError('x' * 10**7)", "raise ValueError('\\x1b[2J\\udcff\\u202e')", "1 / 0",
    "import no_such_module", "raise UsageError('two\\nlines')", "raise UsageError('')", "raise UsageError", "raise Mute from Own()",
    "raise OSError(28, 'No space left on device')", "raise BrokenPipeError", "raise asyncio.CancelledError", "assert False, 'x'",
    "raise SyntaxError('x')", "raise UnicodeDecodeError('utf-8', b'x', 0, 1, 'x')", "raise KeyError('x')", "raise 3",
    "import click; raise click.exceptions.Exit(0)", "import click; raise click.Abort", "import click; raise click.UsageError('x')",
    "warnings.simplefilter('error'); warnings.warn('x')", "raise type('\\x1b', (Exception,), {})('x')", "no_such_name",
]  # fmt: skip
"""Statements that do not come to their end."""

CHANGES = [
    "os.chdir('/')", "os.environ.clear()", "warnings.simplefilter('error')", "gc.disable()",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)", "sys.argv.clear()", "os.umask(0o777)", "np.seterr(all='raise')",
    "sys.set_int_max_str_digits(640)", "import torch; torch.set_default_dtype(torch.float64)", "np.random.seed(0)",
    "import locale; locale.setlocale(locale.LC_ALL, 'C')", "import tempfile; tempfile.tempdir = '/nowhere'",
    "sys.settrace(lambda *_: None)", "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))", "os.write(1, b'x')",
    "import torch; torch.set_grad_enabled(False)", "import torch; torch.use_deterministic_algorithms(True)",
]  # fmt: skip
"""Statements that leave something behind in the process. Whatever follows is right or is said in one sentence."""

DECLARED = """
@dataset('mine')
def mine(data_root):
    {0}
    return Recordings(signals=np.random.default_rng(0).standard_normal((12, 1, 50)), sampling_rate=10, channels=['a'],
        units='V', labels=[0, 1] * 6, classes=['a', 'b'], patients=range(12))
SPACE = SearchSpace('s', RunConfig(dataset='mine', strategy='finetune'), seeds=[0])
"""
PLACES: Mapping[str, tuple[str, Sequence[str]]] = {
    "the file": ("{0}\nSPACE = SearchSpace('s', base, seeds=[0])\n", ["plan", "space.py"]),
    "where": (
        "def keep(config):\n    {0}\n    return True\nSPACE = SearchSpace('s', base, seeds=[0, 1], where=keep)\n",
        ["plan", "space.py"],
    ),
    "a data set": (DECLARED, ["data", "prepare", "mine", "--plugins", "space.py"]),
    "a generator": (
        DECLARED.replace("    return Recordings", "    if 0: yield\n    return Recordings"),
        ["data", "prepare", "mine", "--plugins", "space.py"],
    ),
    "a scenario": (
        "@scenario('mine')\ndef mine(frames):\n    {0}\n    return ScenarioTasks('softmax', [TaskInstances('a', "
        "frames.labels < 2, np.eye(12)[frames.labels])])\n"
        "SPACE = SearchSpace('s', base.replace(scenario='mine'), seeds=[0])\n",
        ["launch", "space.py", "--no-report"],
    ),
    "a network": (
        "@network('mine')\ndef mine(channels, samples, outputs):\n    import torch\n    {0}\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(channels * samples, outputs))\n"
        "SPACE = SearchSpace('s', base.replace(network='mine'), seeds=[0])\n",
        ["launch", "space.py", "--no-report"],
    ),
    "a pass": (
        "@network('mine')\ndef mine(channels, samples, outputs):\n    import torch\n    class Mine(torch.nn.Module):\n"
        "        def __init__(self):\n            super().__init__()\n"
        "            self.body = torch.nn.Linear(channels * samples, outputs)\n"
        "        def forward(self, x):\n            {0}\n            return self.body(x.flatten(1))\n    return Mine()\n"
        "SPACE = SearchSpace('s', base.replace(network='mine'), seeds=[0])\n",
        ["launch", "space.py", "--no-report"],
    ),
    "a default": (
        "def default(config):\n    {0}\n    return 1.0\n"
        "@network('mine', options=dict(rate=FloatOption(default)))\ndef mine(channels, samples, outputs, *, rate):\n"
        "    import torch\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(channels * samples, outputs))\n"
        "SPACE = SearchSpace('s', base.replace(network='mine'), seeds=[0])\n",
        ["plan", "space.py"],
    ),
}
"""Where such a statement may stand, and the command that comes to it."""


def code() -> Iterator[Case]:
    """Every statement in every place."""
    for where, (template, command) in PLACES.items():
        for statement in (*ENDS, *CHANGES):
            text = HEAD + SETUP + template.format(statement)
            fine = (2,) if statement in ENDS else (0, 1, 2, WORKER_STARTED)
            yield Case(
                f"{where}: {statement[:60]}",
                command,
                files={"space.py": text},
                fine=fine,
                may_write=("prepared",) if statement in CHANGES else (),
            )


CONTENTS: Mapping[str, str | bytes] = {
    "nothing": "",
    "zero bytes": b"\0" * 100,
    "UTF-16": "SPACE = 3".encode("utf-16"),
    "Latin-1": "# \xe9\nSPACE = None".encode("latin-1"),
    "another encoding": b"# -*- coding: no-such -*-\nSPACE = None",
    "tabs and spaces": "if True:\n\tx = 1\n        y = 2\n",
    "brackets": "(" * 100_000,
    "sums": "x = " + "1 + " * 100_000 + "1",
    "blocks": "".join(" " * depth + "if 1:\n" for depth in range(150)),
    "a long number": "x = " + "9" * 10_000,
    "bytes": bytes(range(1, 256)) * 100,
    "a zip": b"PK\x03\x04" + b"\0" * 100,
    "return": "return 3",
    "await": "await x",
    "from __future__ import no_such": "from __future__ import no_such",
    "two of one name": HEAD + "SPACE = [SearchSpace('s', base, seeds=[0])] * 2",
    "an iterator": HEAD + "SPACE = iter([SearchSpace('s', base, seeds=[0])])",
    "names that differ in case": HEAD + "SPACE = [SearchSpace(it, base, seeds=[0]) for it in 'aA']",
    "a list in a list": HEAD + "SPACE = [[SearchSpace('s', base, seeds=[0])]]",
    "an array": HEAD + "SPACE = np.array([SearchSpace('s', base, seeds=[0])])",
    **{
        f"SPACE = {it}": HEAD + f"SPACE = {it}"
        for it in (
            "None",
            "3",
            "'space'",
            "[]",
            "()",
            "[3]",
            "{}",
            "RunConfig()",
            "SearchSpace",
            "lambda: 3",
            "base",
            "...",
        )
    },
}


def contents() -> Iterator[Case]:
    """Files that are no Python, or define no search space, and names that cannot be shown."""
    for name, content in CONTENTS.items():
        for verb in ("plan", "launch", "report"):
            yield Case(f"{verb}: {name}", (verb, "space.py"), files={"space.py": content})
    for text in ["\x1b[2J", "a\0b", "a\udcffb", "\u202e", "a\nb", "a\rb", "\u2028", ""]:
        named = {
            "a name": f"SPACE = SearchSpace({text!r}, base, seeds=[0])",
            "an axis": f"SPACE = SearchSpace('s', base, {{{text!r}: {{'a': {{}}}}}}, seeds=[0])",
            "a label": f"SPACE = SearchSpace('s', base, {{'v': {{{text!r}: {{}}, 'b': {{'seed': 1}}}}}}, seeds=[0])",
            "a parameter": f"SPACE = SearchSpace('s', base, search=OptunaSearch({{{text!r}: {{'a': {{}}}}}}, 2))",
            "a strategy": f"@strategy({text!r})\nclass S: pass\nSPACE = SearchSpace('s', base, seeds=[0])",
            "a data set": f"@dataset({text!r})\ndef f(data_root): pass\nSPACE = SearchSpace('s', base, seeds=[0])",
            "an option": f"network('n', options={{{text!r}: FloatOption(1.0)}})(lambda *_: 3)\nSPACE = None",
        }
        for what, source in named.items():
            yield Case(f"{what}: {shown(text)}", ("plan", "space.py"), files={"space.py": HEAD + source})


SEARCHES: Mapping[str, Sequence[str]] = {
    "parameters": [
        "{}", "[]", "3", "None", "{'learning_rate': 3}", "{'no_such': [1]}", "{3: [1]}", "{'seed': [0, 1]}", "{'mc_samples': []}",
        "{'split_seed': [0, 1]}", "{'dataset': ['synthetic']}", "{'scenario': ['class_il']}", "{'mc_samples': 'abc'}",
        "{'mc_samples': [5, 5]}", "{'mc_samples': [5, 'x']}", "{'mc_samples': FloatDistribution(1, 5)}", "{'strategy': [None]}",
        "{'learning_rate': IntDistribution(-3, 3)}", "{'strategy': FloatDistribution(0, 1)}", "{'task_order': ['curriculum']}",
        "{'task_order': [[1, 0]]}", "{'v': {}}", "{'v': {'a': 3}}", "{'v': {'a': {'no_such': 1}}}", "{'v': {'a': {'seed': 1}}}",
        "{'v': {'a': {'mc_samples': 3}}, 'mc_samples': [1, 2]}", "{'mc_samples': {'a': {}}}", "{'mc_samples': None}",
        "{'learning_rate': [float('nan')]}", "{'mc_samples': (it for it in [1])}", "{'mc_samples': {1, 2}}",
        "{'learning_rate': FloatDistribution(0, 1)}",
        "{'storage_fraction': FloatDistribution(0.5, 1.5)}", "{'mc_samples': range(3)}", "{'learning_rate': object()}",
    ],
    "n_trials": ["0", "-1", "1.5", "'3'", "None", "True", "[]", "float('nan')"],
    "objectives": [
        "{}", "[]", "'auc'", "{'aucc': 'maximize'}", "{'auc': 'max'}", "{'auc': None}", "{'strategy': 'maximize'}", "{3: 'x'}", "None",
        "{'auc': ['maximize']}",
    ],
    "sampler": ["'tpee'", "3", "None", "[]", "''", "'\\x1b'", "'grid'", "object()", "'TPE'"],
    "sampler_seed": ["-1", "1.5", "'0'", "None", "True", "float('nan')"],
    "sampler_options": ["3", "[]", "None", "'x'", "{3: 1}", "{'no_such': 1}", "{'seed': 1}", "{'n_startup_trials': 'x'}",
                        "{'n_ei_candidates': None}"],
    "pruning": ["3", "'yes'", "None", "[]", "SuccessiveHalving", "SuccessiveHalving(0)", "SuccessiveHalving(1, 1)",
                "SuccessiveHalving('1')", "SuccessiveHalving(True)", "SuccessiveHalving(1.5)", "SuccessiveHalving(None)"],
    "max_concurrent": ["0", "-1", "1.5", "'2'", "True", "[]", "float('nan')"],
}  # fmt: skip
OF_SAMPLERS = {
    "random": ["{'no_such': 1}", "{'seed': 3}"],
    "gp": ["{'n_startup_trials': 'x'}", "{'deterministic_objective': 3, 'x': 1}"],
    "nsga2": ["{'population_size': 0}", "{'population_size': 1}", "{'population_size': 'x'}", "{'crossover_prob': 3}",
              "{'mutation_prob': -1}", "{'crossover': 3}", "{'swapping_prob': 'x'}"],
    "nsga3": ["{'population_size': 0}", "{'dividing_parameter': 'x'}", "{'population_size': None}"],
    "tpe": ["{'multivariate': 3, 'group': 3, 'x': 1}", "{'constraints_func': 3}", "{'categorical_distance_func': 3}"],
}  # fmt: skip
DISTRIBUTIONS = [
    *(
        f"{kind}Distribution({values})"
        for kind in ("Float", "Int")
        for values in (
            "2, 1", "None, 1", "1, None", "'1', 2", "float('nan'), 1", "1, float('inf')", "0, 1, log=True", "-1, 1, log=True",
            "1, 2, step=0", "1, 2, step=-1", "1, 2, step=5", "1, 3, log=True, step=2", "1, 2, log='yes'", "1, 2, step='x'", "True, 2",
            "1j, 2", "10**5000, 10**5001", "[], 3", "1, 2, step=float('nan')", "b'1', 2",
        )
    ),
    *(f"CategoricalDistribution({it})" for it in ("[]", "'ab'", "3", "None", "[1, 1]", "{1, 2}", "{}", "[[1], [1]]")),
]  # fmt: skip


def searches() -> Iterator[Case]:
    """Every argument of a search with wrong values, every sampler with wrong options, and distributions."""

    def case(what: str, arguments: Mapping[str, str]) -> Case:
        parameters = {"parameters": "{'learning_rate': FloatDistribution(1e-5, 1e-2, log=True)}", "n_trials": "2"}
        given = ", ".join(f"{name}={value}" for name, value in {**parameters, **arguments}.items())
        text = HEAD + f"SPACE = SearchSpace('u', base, search=OptunaSearch({given}), seeds=[0])\n"
        return Case(what[:100], ("launch", "space.py"), files={"space.py": text}, secret="hunter2")

    for name, values in SEARCHES.items():
        yield from (case(f"{name}={value}", {name: value}) for value in values)
    for sampler, options in OF_SAMPLERS.items():
        for value in options:
            yield case(f"{sampler}, {value}", {"sampler": repr(sampler), "sampler_options": value})
    for text in DISTRIBUTIONS:
        yield case(text, {"parameters": f"{{'learning_rate': {text}}}"})
    beside = {
        "axes": "axes={'mc_samples': [1, 2]}",
        "where": "where=lambda config: True",
        "no seeds": "seeds=[]",
        "task order by difficulty": "base=base.replace(task_order='curriculum')",
    }
    for what, text in beside.items():
        search = "search=OptunaSearch({'learning_rate': [1e-3, 1e-4]}, 2)"
        given = ", ".join({"base": "base=base", what: text}.values() if what != "task order by difficulty" else [text])
        space = HEAD + f"SPACE = SearchSpace('u', {search}, {given})\n"
        yield Case(f"a search beside {what}", ("launch", "space.py"), files={"space.py": space})


WRONG_OPTIONS = [
    "3", "'x'", "['no_such']", "[3]", "[None]", "(['storage_fraction'],)", "['batch_size']", "['\\x1b[2J']", "['']",
    "[{'storage_fraction': FloatOption(0.25)}]", "['storage_fraction', {'x': 3}]", "[{'mc_samples': IntOption(20, ge=2)}]",
    "{'x': FloatOption(1.0, gt=lambda config: 0)}", "{'acquisition': ChoiceOption('random', ['random'])}", "lambda config: 3",
    "{'x': 3}", "{'batch_size': FloatOption(1.0)}", "{3: FloatOption(1.0)}", "{'auc': FloatOption(1.0)}",
    "{'_x': FloatOption(1.0)}", "{'model_x': FloatOption(1.0)}", "{'a b': FloatOption(1.0)}", "{'x': FloatOption}",
    "{'storage_fraction': IntOption(1)}", "{'run_id': IntOption(1)}", "{'ewc_strength': IntOption(1)}", "{'x': None}",
]  # fmt: skip
WRONG_NAMES = ["None", "3", "''", "'two words'", "'\\x1b'", "'a/b'", "b'x'", "[]", "'1x'"]
GOOD = {
    "strategy": "type('S', (FineTuning,), {})",
    "acquisition_function": "lambda context, rows: rows",
    "storage_function": "lambda trajectories: trajectories",
    "network": "lambda channels, samples, outputs: 3",
    "scenario": "lambda frames: 3",
    "observer": "lambda event: 3",
    "dataset": "lambda data_root: 3",
}
TAKEN = {
    "strategy": "'clops'", "acquisition_function": "'random'", "storage_function": "'area'", "network": "'clops_cnn'",
    "scenario": "'class_il'", "observer": "'mlflow'", "dataset": "'synthetic'",
}  # fmt: skip
MEMBERS = ["None", "3", "'x'", "[]", "lambda: 3", "lambda a, b, c, d, e, f: 3", "object()", "type('C', (), {})"]
KEYWORDS = {
    "strategy": ["looks_at=()", "work=3", "lockstep='x'", "lockstep=['no_such']", "lockstep=3", "no_such=1", "options=['domain']"],
    "acquisition_function": ["looks_at=()", "no_such=1", "options=['mc_samples']"],
    "storage_function": ["no_such=1", "options=['mc_samples']"],
    "network": ["no_such=1", "options=['replay_ratio']"],
    "scenario": ["looks_at=()", "no_such=1", "options=['domain']", "options=['scenario']"],
    "observer": ["no_such=1"],
    "dataset": [
        "scenarios=3", "scenarios=[]", "scenarios='class_il'", "scenarios=['\\x1b']", "scenarios=[3]", "files=3", "files=['/etc/passwd']",
        "files=['../x']", "files=[3]", "files=['']", "title=3", "title='a\\nb'", "licence=None", "source='\\x1b'", "size=3",
        "batch_size=0", "batch_size='16'", "batch_size=True", "learning_rate=0", "learning_rate=float('nan')", "normalize='x'",
        "normalize=None", "epochs_per_task=0", "epochs_per_task=1.5", "perturbation_std=0", "terms='2020-01-01'", "terms=['soon']",
        "terms=['2020-02-01', '2020-01-01']", "terms=[3]", "terms=['2020-01-01'] * 2", "reference_channel=3", "leads='two'",
        "leads=None", "classes='ab'", "classes=[]", "classes=['a', 'a']", "classes=[3]", "channels='ab'", "channels=[]", "units=3",
        "sampling_rate=0", "sampling_rate='x'", "sampling_rate=float('inf')", "window_seconds=-1", "stride_seconds=0",
        "resample_to=float('nan')", "no_such=1", "batch_size=10**30", "learning_rate=10**5000", "title='x' * 10_000",
    ],
}  # fmt: skip
OPTIONS = [
    *(
        f"{kind}Option({values})"
        for kind in ("Float", "Int")
        for values in (
            "", "None, ge='x'", "'1'", "True", "float('nan')", "float('inf')", "[]", "1, gt=1", "1, lt=1", "1, ge=2", "1, le=0", "1, gt=0, ge=0",
            "1, lt=3, le=3", "1, ge='x'", "1, ge=float('nan')", "1, ge=3, le=1", "1, log='yes'", "0, log=True", "-1, log=True", "1, no=1",
            "10**5000",
        )
    ),
    "IntOption(1.5)", "IntOption(1, ge=0.5)", "BoolOption(1)", "BoolOption(None)", "BoolOption('yes')", "BoolOption()",
    "ChoiceOption('a', 'abc')", "ChoiceOption('a', [])", "ChoiceOption('d', ['a', 'b'])", "ChoiceOption('a', 3)", "ChoiceOption(1, [1])",
    "ChoiceOption('a', ['a', 3])", "ChoiceOption('a', None)", "ChoiceOption('a', ['a', 'a'])",
]  # fmt: skip


def declarations() -> Iterator[Case]:
    """Every decorator with wrong names, members and arguments; options that cannot be."""
    head = HEAD + "from clops_sweep.learning.strategies.finetune import FineTuning\n"

    def case(text: str) -> Case:
        space = f"{head}{text}\nSPACE = SearchSpace('s', base, seeds=[0])\n"
        return Case(text[:100], ("plan", "space.py"), files={"space.py": space})

    for decorator, good in GOOD.items():
        for name in (*WRONG_NAMES, TAKEN[decorator]):
            yield case(f"{decorator}({name})({good})")
        for member in MEMBERS:
            if decorator == "observer" and member.startswith(("lambda a", "type")):
                continue
            yield case(f"{decorator}('mine')({member})")
        yield case(f"{decorator}()({good})")
        yield case(f"{decorator}({good})")
        for keyword in KEYWORDS[decorator]:
            yield case(f"{decorator}('mine', {keyword})({good})")
        if decorator not in ("observer", "dataset"):
            for value in WRONG_OPTIONS:
                yield case(f"{decorator}('mine', options={value})({good})")
    for option in OPTIONS:
        yield case(f"network('mine', options={{'x': {option}}})(lambda channels, samples, outputs, *, x: 3)")
    yield case("network('mine', options={'x': FloatOption(1.0)})(lambda channels, samples, outputs: 3)")


RETURNED: Mapping[str, Sequence[str]] = {
    "FloatOption({}, gt=0)": ["None", "0.0", "-1", "'1'", "True", "[]", "float('nan')", "10**5000", "config", "config.seed", "config.mine",
                              "config.rate", "config['batch_size']", "config.storage_fraction", "lambda config: 1.0"],
    "IntOption({}, le=9)": ["None", "1.5", "10", "'1'", "config.weight_seed", "2**63"],
    "BoolOption({})": ["None", "1", "'yes'", "config.strategy"],
    "ChoiceOption({}, ['a', 'b'])": ["None", "'c'", "['a']", "0", "config.strategy"],
}  # fmt: skip
"""By kind of option: what its default may not return."""

TWICE = [
    ("FloatOption(1.0)", "FloatOption(2.0)"), ("FloatOption(1.0)", "FloatOption(1.0, gt=0)"), ("FloatOption(1.0)", "IntOption(1)"),
    ("FloatOption(1.0)", "FloatOption(1.0, log=True)"), ("BoolOption(False)", "BoolOption(True)"),
    ("ChoiceOption('a', ['a', 'b'])", "ChoiceOption('a', ['b', 'a'])"), ("ChoiceOption('a', ['a'])", "ChoiceOption('a', ['a', 'b'])"),
    ("FloatOption(lambda config: 1.0)", "FloatOption(lambda config: 1.0)"),
]  # fmt: skip
"""Definitions that differ; two functions are never the same definition."""

UNUSED = [
    "RunConfig(strategy='finetune', storage_fraction=0.5)", "RunConfig(strategy='ewc', mc_samples=5)",
    "RunConfig(strategy='replay', acquisition='random')", "RunConfig(strategy='clops', memory_fraction=0.1)",
    "RunConfig(strategy='mine', other=2.0)", "RunConfig(acquisition='random', mc_samples=5)",
    "RunConfig(acquisition='entropy', perturbation_std=1.0)", "RunConfig(strategy='gem', acquisition='no_such')",
    "RunConfig(strategy='er', memory_size=5, memory_fraction=0.1)", "RunConfig(strategy='mine', mine=2.0, strength='x')",
]  # fmt: skip
"""Configs with an option that the plug-ins they name do not use, or with two that exclude each other."""


def own_options() -> Iterator[Case]:
    """Defaults that are functions, one name with two definitions, and options that no plug-in of a config uses."""
    head = f"{HEAD}from clops_sweep.learning.strategies.finetune import FineTuning\n"

    def case(name: str, declared: str, base: str) -> Case:
        space = f"{head}{declared}\nSPACE = SearchSpace('s', {base}, seeds=[0])\n"
        return Case(name, ("plan", "space.py"), files={"space.py": space})

    mine = "@strategy('mine', options={{'rate': {}}})\nclass Mine(FineTuning): pass\n"
    for kind, values in RETURNED.items():
        for value in values:
            option = kind.format(f"lambda config: {value}")
            yield case(f"default: {option}", mine.format(option), "RunConfig(strategy='mine')")
    for option in ("FloatOption(lambda: 1.0)", "FloatOption(lambda config, more: 1.0)", "FloatOption(float)"):
        yield case(f"default: {option}", mine.format(option), "RunConfig(strategy='mine')")
    for first, second in TWICE:
        declared = f"{mine.format(first)}network('other', options={{'rate': {second}}})(lambda *_, rate: 3)"
        yield case(f"{first}, {second}", declared, "base")
    uses = (
        "strategy('mine', options=['storage_fraction', {'strength': FloatOption(1.0)}])(type('S', (FineTuning,), {}))\n"
        "network('other', options={'other': FloatOption(1.0)})(lambda *_, other: 3)"
    )
    for text in UNUSED:
        yield case(text, uses, text)


NETWORKS = [
    "None", "3", "nn.Linear", "nn.Flatten()", "nn.Sequential()", "nn.Sequential(nn.Flatten(), nn.Linear(3, outputs))",
    "nn.Sequential(nn.Flatten(), nn.Linear(2500, outputs + 1))", "nn.Sequential(nn.Flatten(), nn.Linear(2500, outputs).double())",
    "nn.Sequential(nn.Flatten(), nn.Linear(2500, outputs).requires_grad_(False))", "nn.Linear(2500, outputs)",
    "nn.Sequential(nn.Flatten(), nn.Linear(2500, outputs).to('meta'))", "nn.LSTM(2500, outputs)", "nn.Identity()",
    "nn.Sequential(nn.Flatten(), nn.BatchNorm1d(2500, track_running_stats=False), nn.Linear(2500, outputs))",
    "nn.Sequential(nn.Flatten(), nn.LazyLinear(10**12))", "nn.Sequential(nn.Flatten(), nn.Linear(2500, outputs), nn.Flatten(0))",
    "torch.jit.script(nn.Linear(3, outputs))", "nn.Sequential(nn.Flatten(), nn.Linear(2500, outputs), nn.LogSoftmax(0))",
    "nn.DataParallel(nn.Linear(3, outputs))", "lambda x: x", "nn.ModuleList([nn.Linear(3, 3)])", "nn.ParameterList([])",
]  # fmt: skip
SCENARIOS = [
    "None", "3", "[]", "ScenarioTasks", "ScenarioTasks('nothing', [T('a')])", "ScenarioTasks('softmax', [])", "T('a')",
    "ScenarioTasks('softmax', None)", "ScenarioTasks('softmax', 3)", "ScenarioTasks('softmax', [3])", "ScenarioTasks(None, [T('a')])",
    "ScenarioTasks('softmax', [T('a'), T('a')])", "ScenarioTasks('softmax', [T('')])", "ScenarioTasks('softmax', [T(3)])",
    "ScenarioTasks('softmax', [T('\\x1b[2J')])", "ScenarioTasks('softmax', [T('a\\nb')])",
    "ScenarioTasks('softmax', [T('a', instances=every[:3])])", "ScenarioTasks('softmax', [T('a', instances=labels)])",
    "ScenarioTasks('softmax', [T('a', instances=~every)])", "ScenarioTasks('softmax', [T('a', instances=None)])",
    "ScenarioTasks('softmax', [T('a', targets=None)])", "ScenarioTasks('softmax', [T('a', targets=eye[:3])])",
    "ScenarioTasks('softmax', [T('a', targets=eye * np.nan)])", "ScenarioTasks('softmax', [T('a', targets=eye * 0.5)])",
    "ScenarioTasks('softmax', [T('a', targets=eye * 0)])", "ScenarioTasks('softmax', [T('a', targets=labels)])",
    "ScenarioTasks('softmax', [T('a', targets=eye[:, :0])])", "ScenarioTasks('softmax', [T('a', targets=eye[:, :1])])",
    "ScenarioTasks('binary', [T('a')])", "ScenarioTasks('multilabel', [T('a')], by_position=True)",
    "ScenarioTasks('softmax', [T('a'), T('b', targets=eye[:, :5])])", "ScenarioTasks('softmax', [T('a', outputs=[99])])",
    "ScenarioTasks('softmax', [T('a', outputs=3)])", "ScenarioTasks('softmax', [T('a', outputs=['x'])])", "'softmax', [T('a')]",
    "ScenarioTasks('softmax', [T('a', title=3)])", "ScenarioTasks('softmax', [T('a', targets=eye.astype(str))])",
    "ScenarioTasks('softmax', [T('a', targets=eye.astype(object))])", "ScenarioTasks('softmax', (T('a') for _ in range(2)))",
    "ScenarioTasks('softmax', [T('a', instances=np.ma.masked_array(every, every))])", "ScenarioTasks('softmax', [T('a', outputs=[-1])])",
    "ScenarioTasks('softmax', [T('a', outputs=[0.5])])",
    "ScenarioTasks('softmax', [T('a', targets=eye + 0j)])", "ScenarioTasks('softmax', [T(b'a')])", "frames",
]  # fmt: skip


def networks_and_scenarios() -> Iterator[Case]:
    """Networks that cannot be trained and scenarios that are none, found before a worker starts."""
    for text in NETWORKS:
        space = (
            f"{HEAD}import torch\nfrom torch import nn\n@network('mine')\ndef mine(channels, samples, outputs):\n"
            f"    return {text}\nSPACE = SearchSpace('s', base.replace(network='mine'), seeds=[0])\n"
        )
        yield Case(f"network: {text[:80]}", ("launch", "space.py"), files={"space.py": space})
    for text in SCENARIOS:
        space = (
            f"{HEAD}@scenario('mine')\ndef mine(frames):\n    labels = frames.labels\n    every = labels < 99\n"
            f"    eye = np.eye(12)[labels]\n    def T(name, instances=every, targets=eye, **more):\n"
            f"        return TaskInstances(name, instances, targets, **more)\n    return {text}\n"
            "SPACE = SearchSpace('s', base.replace(scenario='mine'), seeds=[0])\n"
        )
        yield Case(f"scenario: {text[:80]}", ("launch", "space.py"), files={"space.py": space})


def together() -> Iterator[Case]:
    """Fields that are right and do not go together, on an axis and in the base."""
    pairs: list[Mapping[str, Any]] = [
        {"strategy": "clops", "weight_replay": True, "storage_order": "random"},
        {"scenario": "domain_il", "leads": "all"},
        {"scenario": "time_il", "dataset": "mitbih"},
        {"scenario": "domain_il", "dataset": "mitbih"},
        {"task_classes": [[0, 1], [2, 3, 4]]},
        {"task_classes": [[0, 1], [1, 2]]},
        {"task_classes": [[0, 1], [2, 99]]},
        {"task_classes": [["no such", "b"]]},
        {"strategy": "er_ace"},
        {"strategy": "er_ace", "scenario": "domain_il"},
        {"task_order": [1, 0]},
        {"scenario": "time_il", "task_order": [0, 1, 2, 3]},
        {"scenario": "domain_il", "domain": "no_such"},
        {"network": "clops_cnn", "leads": "all"},
        {"ewc_strength": 3.0, "no_such": 1},
        {"split_seed": 2**32 - 1, "seed": 2**32},
    ]
    for fields, (verb, axis) in product(pairs, (("launch", False), ("launch", True))):
        given = ", ".join(f"{name!r}: {value!r}" for name, value in fields.items())
        space = f"{{'v': {{'a': {{{given}}}}}}}" if axis else "{}"
        base = "base" if axis else f"base.replace(**{{{given}}})"
        text = f"{HEAD}SPACE = SearchSpace('s', {base}, {space}, seeds=[0])\n"
        yield Case(f"{'axis' if axis else 'base'}: {given}", (verb, "space.py"), files={"space.py": text})
