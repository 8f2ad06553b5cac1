"""Whatever can be wrong with what is typed, written or found: exit status 2, one sentence, and nothing written."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clops_sweep import RunConfig
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import data_hashes
from clops_sweep.search.study import open_study
from clops_sweep.store.run_store import RunStore
from tests.conftest import Command, Tables
from tests.helpers.stores import write_finished

Refused = Callable[..., str]

HEAD = """
import itertools
from sys import exit
import numpy as np
from clops_sweep import FloatDistribution, IntDistribution, OptunaSearch, RunConfig, SearchSpace
base = RunConfig()
"""
RUN = "a" * 24


def grid(arguments: str = "", name: str = "'s'", base: str = "base") -> str:
    """A search space with one run, or whatever the arguments make of it."""
    seeds = "" if "seeds" in arguments else "seeds=[0], "
    return f"{HEAD}SPACE = SearchSpace(name={name}, base={base}, {seeds}{arguments})\n"


def run(fields: str) -> str:
    """A search space with one run of these fields."""
    return grid(base=f"RunConfig({fields})")


def search(arguments: str, parameters: str = "{'learning_rate': FloatDistribution(1e-5, 1e-2, log=True)}") -> str:
    """A search space with a search."""
    return grid(f"search=OptunaSearch(parameters={parameters}, n_trials=2, {arguments})")


def raising(what: str) -> str:
    """A file that raises something."""
    return f"class Own(BaseException):\n    pass\nraise {what}\n"


def own(plugin: str, fields: str) -> str:
    """A search space with one run that uses a plug-in of the file."""
    return f"from clops_sweep import network, scenario\n{plugin}\n{run(fields)}"


TWO = "SPACE = [SearchSpace(name={!r}, base=base, seeds=[0]), SearchSpace(name={!r}, base=base, seeds=[0])]\n"

SPACES: list[tuple[str, str]] = [
    # numbers that are none
    (run("mc_samples=True"), "space.py: mc_samples = True: expected a number, not bool"),
    (run("mc_samples='20'"), "space.py: mc_samples = '20': expected a number, not text"),
    (run("mc_samples=20.5"), "space.py: mc_samples = 20.5: "),
    (run("mc_samples=float('nan')"), "space.py: mc_samples = nan: "),
    (run("mc_samples=float('inf')"), "space.py: mc_samples = inf: "),
    (run("mc_samples=0"), "space.py: mc_samples = 0: "),
    # options that the strategy does not use
    (
        run("strategy='finetune', storage_fraction=0.5"),
        "space.py: storage_fraction = 0.5: not used by strategy 'finetune', but by strategy 'clops', 'gem', 'mir', ",
    ),
    (
        run("acquisition='random', mc_samples=5"),
        "space.py: mc_samples = 5: not used by acquisition 'random', but by acquisition 'balc_kld', 'bald_mcd', ",
    ),
    (
        grid("axes={'replay_ratio': [0.5, 1.0]}"),
        "space.py: search space 's': no run of it uses 'replay_ratio', an option of strategy 'aser', 'derpp', ",
    ),
    (
        own(
            "from clops_sweep import FloatOption\n"
            "@network('mine', options={'mc_samples': FloatOption(1.0)})\n"
            "def mine(channels, samples, outputs, *, mc_samples): pass",
            "network='mine'",
        ),
        "space.py: network 'mine': option 'mc_samples' is defined differently by acquisition ",
    ),
    (
        own(
            "from clops_sweep import FloatOption\n"
            "@network('mine', options={'width': FloatOption(lambda config: 1 / 0)})\n"
            "def mine(channels, samples, outputs, *, width): pass",
            "network='mine'",
        ),
        "space.py: option 'width': default raises ZeroDivisionError: division by zero",
    ),
    (run("strategy='er', memory_size=5, memory_fraction=0.5"), "space.py: memory_size and memory_fraction are both"),
    (run("mc_samples=10**5000"), "space.py: mc_samples = "),
    (run("mc_samples=None"), "space.py: mc_samples = None: expected a whole number"),
    (run("mc_samples=[20]"), "space.py: mc_samples = [20]: expected a number, not list"),
    (run("storage_fraction=True"), "space.py: storage_fraction = True: expected a number, not bool"),
    (run("storage_fraction='0.5'"), "space.py: storage_fraction = '0.5': expected a number, not text"),
    (run("storage_fraction=float('nan')"), "space.py: storage_fraction = nan: "),
    (run("storage_fraction=0.5+0j"), "space.py: storage_fraction = (0.5+0j): expected a number, not complex"),
    (run("learning_rate=float('inf')"), "space.py: learning_rate = inf: "),
    (run("learning_rate=-1e-3"), "space.py: learning_rate = -0.001: "),
    (run("seed=2**32"), "space.py: seed = 4294967296: "),
    (run("seed=-1"), "space.py: seed = -1: "),
    (run("weight_replay=1"), "space.py: weight_replay = 1: expected true or false"),
    (run("weight_replay='yes'"), "space.py: weight_replay = 'yes': expected true or false"),
    # task orders
    (run("task_order=True"), "space.py: task_order = True: expected one of sequential, "),
    (run("task_order=[]"), "space.py: task_order = []: expected one of sequential, "),
    (run("task_order=()"), "space.py: task_order = (): expected one of sequential, "),
    (run("task_order='3'"), "space.py: task_order = '3': expected one of sequential, "),
    (run("task_order=[0, 0]"), "space.py: task_order [0, 0] is not a permutation of 0..N-1"),
    (run("task_order=[1, 0]"), "search space 's': task_order [1, 0]: class_il of synthetic has 6 tasks; expected a"),
    (
        run("scenario='time_il', task_order=[0, 1, 2, 3]"),
        "search space 's': task_order [0, 1, 2, 3]: time_il of synthetic has 3 tasks; expected a permutation of 0..2",
    ),
    (
        search("", "{'task_order': [[1, 0], [0, 1]]}"),
        "search space 's': task_order [1, 0]: class_il of synthetic has 6 tasks; expected a permutation of 0..5",
    ),
    # names of things that there are not
    (
        run("memory_length=3"),
        "space.py: unknown key 'memory_length'; related keys: memory_size (strategy 'agem', ",
    ),
    (run("strength=3"), "space.py: unknown key 'strength' (did you mean 'si_strength' of strategy 'si'?)"),
    (run("BATCH_SIZE=3"), "space.py: unknown key 'BATCH_SIZE' (did you mean 'batch_size'?)"),
    (run("quite_unlike_any=3"), "space.py: unknown key 'quite_unlike_any'"),
    (run("batch_sise=3"), "space.py: unknown key 'batch_sise' (did you mean 'batch_size'?)"),
    (run("**{'x' * 5000: 3}"), "space.py: unknown key 'xxx"),
    (run("strategy='clop'"), "space.py: strategy = 'clop': not known (did you mean 'clops'?)"),
    (run("strategy=None"), "space.py: strategy = None: "),
    (run("strategy='\\x1b[2J'"), "space.py: strategy = '\\x1b[2J': not known"),
    (run("dataset='x' * 100_000"), "space.py: dataset = 'xxx"),
    (run("scenario='domain_il', dataset='mitbih'"), "space.py: scenario 'domain_il' does not go with dataset"),
    (run("weight_replay=True, storage_order='random'"), "space.py: weight_replay needs beta, which storage_order"),
    # what a file may do
    ("", "space.py defines no SPACE; expected SPACE = SearchSpace(...)"),
    ("SPACE = None\n", "space.py defines no SPACE; expected SPACE = SearchSpace(...)"),
    ("SPACE = []\n", "space.py defines no SPACE; expected SPACE = SearchSpace(...)"),
    ("SPACE = (\n", "space.py raises SyntaxError in line 1: "),
    ("\0", "space.py raises "),  # ValueError until Python 3.11.3
    ("(" * 5000, "space.py raises "),
    ("import no_such_module_of_mine\n", "space.py raises ModuleNotFoundError in line 1: "),
    (raising("SystemExit"), "space.py raises SystemExit in line 3"),
    (raising("SystemExit(0)"), "space.py raises SystemExit in line 3: 0"),
    (raising("GeneratorExit"), "space.py raises GeneratorExit"),
    (raising("Own('two\\nlines')"), "space.py raises Own"),
    (raising("BaseExceptionGroup('several', [Own()])"), "space.py raises BaseExceptionGroup"),
    (raising("ValueError('\\x1b[2J\\udcff\\u202e')"), "space.py raises ValueError in line 3: \\x1b[2J\\udcff\\u202e"),
    (raising("MemoryError"), "space.py raises MemoryError in line 3"),
    ("def f():\n    f()\nf()\n", "space.py raises RecursionError in line 2"),
    # names, labels, collisions
    (grid(name="None"), "space.py: search space name None: expected text"),
    (grid(name="''"), "space.py: search space name '': expected a name that can stand in a file name"),
    (grid(name="'a/b'"), "space.py: search space name 'a/b': expected a name that can stand in a file name"),
    (grid(name="'../up'"), "space.py: search space name '../up': expected a name that can stand in a file name"),
    (grid(name="'back\\\\slash'"), "space.py: search space name "),
    (grid(name="'.hidden'"), "space.py: search space name '.hidden': expected a name that can stand in a file name"),
    (grid(name="'x' * 101"), "space.py: search space name 'xxxxxxxxxxxxxxxxxxxx'...: expected 100 bytes at most"),
    (grid(name="'\\u4e2d' * 60"), "space.py: search space name '\u4e2d\u4e2d"),
    (grid(name="'a\\tb'"), "search space name 'a\\tb': expected characters that can be printed"),
    (grid(name="'a\\x1b[2J'"), "search space name 'a\\x1b[2J': expected characters that can be printed"),
    (grid(name="'a\\udcff'"), "search space name 'a\\udcff': expected characters that can be printed"),
    (grid(name="'a\\u202eb'"), "search space name 'a\\u202eb': expected characters that can be printed"),
    (HEAD + TWO.format("same", "same"), "space.py has two search spaces of the name 'same'"),
    (HEAD + TWO.format("Same", "same"), "search spaces 'Same' and 'same': their files would have one name"),
    (HEAD + TWO.format("a b", "a?b"), "search spaces 'a b' and 'a?b': their files would have one name"),
    (grid("axes={'v': {'a\\nb': {}}}"), "search space 's', axis 'v': label 'a\\nb': expected characters that can be"),
    (grid("axes={'v': {'a\\udcff': {}}}"), "search space 's', axis 'v': label 'a\\udcff': expected characters that"),
    (grid("axes={'v\\x07': {'a': {}}}"), "search space 's': axis 'v\\x07': expected characters that can be printed"),
    # axes, seeds, conditions
    (grid("axes=[1]"), "space.py: search space 's': axes: expected a mapping"),
    (grid("axes={'mc_samples': 'abc'}"), "space.py: search space 's', axis 'mc_samples': expected a list"),
    (grid("axes={'mc_samples': 5}"), "space.py: search space 's', axis 'mc_samples': expected a list"),
    (grid("axes={'mc_samples': []}"), "space.py: search space 's', axis 'mc_samples' has no values"),
    (grid("axes={'mc_samples': [5, 5]}"), "space.py: search space 's', axis 'mc_samples' holds a value twice"),
    (grid("axes={'mc_samples': [5, True]}"), "space.py: search space 's', cell mc_samples True: mc_samples = True: "),
    (grid("axes={'mc_sample': [5]}"), "space.py: unknown key 'mc_sample' (did you mean 'mc_samples'?)"),
    (grid("axes={'v': {'a': 3}}"), "space.py: search space 's', axis 'v': variant 'a': expected a mapping"),
    (grid("axes={'v': {'a': {'seed': 1}}}"), "space.py: search space 's', axis 'v': give seeds as seeds=..."),
    (grid("seeds=[]"), "space.py: search space 's': seeds has no values"),
    (grid("seeds=[1, 1]"), "space.py: search space 's': seeds holds a value twice"),
    (grid("seeds=['1']"), "space.py: search space 's': seed = '1': expected a number, not text"),
    (grid("seeds=[0.5]"), "space.py: search space 's': seed = 0.5: "),
    (
        grid("where=lambda config: 1 / 0"),
        "space.py: search space 's': where raises ZeroDivisionError: division by zero",
    ),
    (grid("where=lambda: True"), "space.py: search space 's': where raises TypeError: "),
    (grid("where=3"), "space.py: search space 's': where: expected a function of a config, not 3"),
    (grid("where=lambda config: False"), "space.py: no run is left to ask for"),
    (grid(base="{}"), "space.py: search space 's': base: expected a RunConfig, not dict"),
    (grid("axes={'mc_samples': [1, 1.0]}"), "space.py: search space 's', axis 'mc_samples' holds a value twice"),
    (grid("axes={'mc_samples': [1, True]}"), "space.py: search space 's', axis 'mc_samples' holds a value twice"),
    (grid("axes={'mc_samples': np.array([1, 1])}"), "space.py: search space 's', axis 'mc_samples' holds a value twi"),
    (grid("axes={'mc_samples': np.array(5)}"), "space.py: search space 's', axis 'mc_samples': expected a list of va"),
    (grid("axes={'mc_samples': [[5]]}"), "space.py: search space 's', cell mc_samples [5]: mc_samples = [5]: "),
    (grid("axes={'learning_rate': [float('nan')]}"), "space.py: search space 's', cell learning_rate nan: learning_ra"),
    (grid("axes={'mc_samples': {5, 6}}"), "space.py: search space 's', axis 'mc_samples': expected a list of values"),
    (grid("axes={'mc_samples': {5: 6}}"), "space.py: search space 's', axis 'mc_samples': variant 5: expected a mapp"),
    (grid("axes={'mc_samples': b'abc'}"), "space.py: search space 's', axis 'mc_samples': expected a list of values"),
    (grid("axes={'mc_samples': (it for it in [5])}"), "space.py: search space 's', axis 'mc_samples': expected a list"),
    (grid("axes={'mc_samples': itertools.count(1)}"), "space.py: search space 's', axis 'mc_samples': expected a list"),
    (grid("axes={'mc_samples': range(1, 10**12)}"), "space.py: search space 's': its axes and seeds make 999,999,999"),
    (
        grid("axes={'mc_samples': range(1, 10**4), 'batch_size': range(1, 10**8)}"),
        "space.py: search space 's': its axes and seeds make 999,899,990,001 runs; expected 250,000 at most",
    ),
    (grid("axes={3: [1]}"), "space.py: search space 's': axis 3: expected text"),
    (grid("axes={'v': {'a': {3: 4}}}"), "space.py: unknown key 3: expected text"),
    (grid("axes={'task_classes': [[[0, 1]], {'a'}]}"), "space.py: search space 's', axis 'task_classes': expected nu"),
    (grid("seeds=range(10**12)"), "space.py: search space 's': its axes and seeds make 1,000,000,000,000 runs; expec"),
    (grid("seeds='012'"), "space.py: search space 's': seeds: expected a list of values, not text"),
    (grid("seeds={0: 1}"), "space.py: search space 's': seeds: expected a list of values, not dict"),
    (grid("seeds=itertools.count()"), "space.py: search space 's': seeds: expected a list of values, not count"),
    (grid("seeds=np.array([0.5])"), "space.py: search space 's': seed = 0.5: "),
    (grid("seeds=[0, False]"), "space.py: search space 's': seeds holds a value twice"),
    (grid("resolve=3"), "space.py: search space 's': resolve: expected a function of a config, not 3"),
    (grid("resolve=lambda config: None"), "space.py: search space 's': resolve returns None: expected a RunConfig"),
    (grid("resolve=lambda config: config.replace(seed=7)"), "space.py: search space 's': resolve returns a config wi"),
    (grid("resolve=lambda config: exit()"), "space.py: search space 's': resolve raises SystemExit:"),
    (grid("where=lambda config: exit()"), "space.py: search space 's': where raises SystemExit:"),
    (run("task_order=range(10**12)"), "space.py: task_order = range(0, 1000000000000): expected one of sequential"),
    (run("task_classes=[[0, 99]]"), "search space 's': task_classes: synthetic has 12 classes and no class 99; expec"),
    (run("task_classes=[['NSR', 'none such']]"), "task_classes: 'none such' is no class of 'synthetic', which has "),
    (run("scenario='domain_il', domain='hospital'"), "domain_il: 'synthetic' has no column 'hospital' of domains"),
    (run("scenario='subject_il', split_within='day'"), "space.py: split_within = 'day': expected 'people' or 'time'"),
    (
        run("scenario='subject_il', people_per_task=0"),
        "space.py: people_per_task = 0: expected at least 1",
    ),
    (run("scenario='subject_il', people_per_task=99999"), "subject_il: people_per_task = 99999, and 'synthetic' has "),
    (run("scenario='subject_il', split_within='time'"), "subject_il: class 'TRIGEMINY' of 'synthetic' is in vali"),
    (run("leads='all'"), "search space 's': network 'clops_cnn' takes one lead, and instances of synthetic have 12"),
    (
        "from clops_sweep import dataset\n@dataset('pairs', channels=('x', 'y'))\ndef pairs(root):\n    yield\n"
        + run("dataset='pairs'"),
        "search space 's': network 'clops_cnn' takes one lead, and instances of pairs have 2",
    ),
    (run("strategy='er_ace'"), "strategy 'er_ace' needs one output a class, as class_il_union has"),
    (
        own("@network('own')\ndef own(channels, samples, outputs):\n    exit(0)", "network='own'"),
        "network 'own': raises when made for channels = 1, samples = 2500, outputs = 1 (SystemExit: 0)",
    ),
    (
        own("@network('own')\ndef own(channels, samples, outputs):\n    return None", "network='own'"),
        "network 'own': returned NoneType; expected a torch.nn.Module",
    ),
    (
        own("@scenario('own')\ndef own(frames):\n    exit(0)", "scenario='own'"),
        "scenario 'own' raises SystemExit for 'synthetic': 0",
    ),
    (
        own("@scenario('own', headline=('bwt',))\ndef own(frames):\n    exit(0)", "scenario='own'"),
        "space.py: scenario 'own': headline: 'bwt': expected one of auc, accuracy, ",
    ),
    # searches
    (search("", "{}"), "space.py: OptunaSearch: parameters is empty"),
    (search("", "{'learning_rate': 3}"), "space.py: parameter 'learning_rate': expected a distribution"),
    (search("", "{'seed': [1, 2]}"), "space.py: search space 's': parameter 'seed': 'seed' cannot be searched over"),
    (search("", "{'learning_rate': FloatDistribution(2, 1)}"), "space.py raises ValueError in line "),
    (search("", "{'batch_size': FloatDistribution(1, 2)}"), "space.py: search space 's': parameter 'batch_size': "),
    (search("", "{'v': {'a\\x1b': {}, 'b': {}}}"), "search space 's', axis 'v': label 'a\\x1b': expected characters"),
    (search("sampler='tpee'"), "space.py: sampler = 'tpee': not known (did you mean 'tpe'?)"),
    (search("sampler_options={'no_such': 1}"), "search space 's': sampler_options of 'tpe' (no_such): "),
    (
        search("").replace("n_trials=2", "n_trials=10**9"),
        "space.py: search space 's': 1,000,000,000 trials of 1 seed make 1,000,000,000 runs; expected",
    ),
    (search("", "{'learning_rate': FloatDistribution('a', 2)}"), "space.py raises "),
    (search("", "{'learning_rate': FloatDistribution(1, 10**400)}"), "space.py raises "),
    (search("", "{'learning_rate': FloatDistribution(1, 0)}"), "space.py raises "),
    (search("", "{'batch_size': range(1, 10**9)}"), "space.py: parameter 'batch_size': range(1, 1000000000): expected"),
    (search("", "{'batch_size': [8, 8.0]}"), "space.py: parameter 'batch_size': [8, 8.0]: expected values that differ"),
    (search("", "{'v': {'a': 3}}"), "space.py: parameter 'v': variant 'a': expected a mapping from fields to values"),
    (search("", "{'v': {3: {}}}"), "space.py: parameter 'v': variant 3: expected text as its name"),
    (search("sampler='nsga2', sampler_options={'population_size': 0}"), "search space 's': sampler_options of 'nsga2'"),
    (search("sampler_options=3"), "space.py: OptunaSearch: sampler_options = 3: expected a mapping from names"),
    (search("objectives={'aucc': 'maximize'}"), "space.py: objective 'aucc': the table runs has no numeric column"),
    (
        search("objectives={'auc_seen': 'maximize'}"),
        "space.py: search space 's': objective 'auc_seen': class_il",
    ),
    (search("objectives={'auc': 'max'}"), "space.py: objective 'auc': 'max': expected maximize or minimize"),
    (search("sampler_seed=-1"), "space.py: OptunaSearch: sampler_seed = -1: expected at least 0"),
    (search("max_concurrent=True"), "space.py: OptunaSearch: max_concurrent = True: expected a number, not bool"),
]

GOOD = grid("axes={'storage_fraction': [0.1, 0.5]}")
LONG = "x" * 5000

SELECTIONS: list[tuple[list[str], str]] = [
    (["--set", "task_order=" + "[" * 100_000], "--set 'task_order=[[["),
    (["--set", "task_order=[" + "9" * 5000 + "]"], "--set 'task_order=[999"),
    (["--set", "batch_size=" + "9" * 5000], "--set 'batch_size=999"),
    (["--set", "mc_samples=true"], "mc_samples = True: expected a number, not bool"),
    (["--set", "mc_samples=True"], "mc_samples = True: expected a number, not bool"),
    (["--set", "mc_samples=20.5"], "mc_samples = 20.5: "),
    (["--set", 'mc_samples="20"'], "mc_samples = '20': expected a number, not text"),
    (["--set", "mc_samples=NaN"], "mc_samples = nan: "),
    (["--set", "learning_rate=Infinity"], "learning_rate = inf: "),
    (["--set", "learning_rate="], "learning_rate = '': expected a number, not text"),
    (["--set", "weight_replay=yes"], "weight_replay = 'yes': expected true or false"),
    (["--set", "task_order=true"], "task_order = True: expected one of sequential, "),
    (["--set", "task_order=[]"], "task_order = []: expected one of sequential, "),
    (["--set", "task_order={}"], "task_order = {}: expected one of sequential, "),
    (["--set", "task_order=[2, 1, 0]"], "search space 's': task_order [2, 1, 0]: class_il of synthetic has 6 tasks; "),
    (["--set", "batch_size"], "--set 'batch_size': expected NAME=VALUE"),
    (["--set", "=3"], "--set '=3': expected NAME=VALUE"),
    (["--set", ""], "--set '': expected NAME=VALUE"),
    (["--set", "batch_size=3", "--set", "batch_size=4"], "--set 'batch_size=4': batch_size is set twice"),
    (["--set", "batch_sise=3"], "unknown key 'batch_sise' (did you mean 'batch_size'?)"),
    (["--set", f"{LONG}=3"], "unknown key 'xxx"),
    (["--set", "a\x1b[2J\udcff\u202e=3"], "unknown key 'a\\x1b[2J\\udcff\\u202e'"),
    (["--set", "dataset=\x1b[2J"], "dataset = '\\x1b[2J': no data set of that name"),
    (["--set", f"dataset={LONG}"], "dataset = 'xxx"),
    (
        ["--set", "memory_fraction=0.5"],
        "search space 's': no run of it uses 'memory_fraction', an option of ",
    ),
    (["--set", "seed=1"], "seeds are set by the search space and by --seeds"),
    (["--set", "storage_fraction=1"], "search space 's' varies 'storage_fraction' itself"),
    (["--where", " "], "Invalid value for '--where': it is empty"),
    (["--where", "storage_fraction = 0.5"], "--where 'storage_fraction = 0.5': a condition compares with =="),
    (["--where", "__import__('os')"], "--where \"__import__('os')\": it takes comparisons"),
    (["--where", "(" * 1000], "--where '(((("),
    (["--where", "not " * 2000 + "True"], "--where 'not not"),
    (["--where", "storage_fraction > 'a'"], "--where \"storage_fraction > 'a'\": "),
    (["--where", "storage_fraction / 0 > 1"], "--where 'storage_fraction / 0 > 1': "),
    (["--where", "1" * 5000], "--where '111"),
    (["--where", "strategy == '\udcff\x1b'"], "--where \"strategy == '\\udcff\\x1b'\": Python cannot read it"),
    (["--where", LONG * 3], "--where 'xxx"),
    (["--seeds", "0"], "Invalid value for '--seeds': "),
    (["--seeds", "two"], "Invalid value for '--seeds': "),
    (["--seeds", "1e3"], "Invalid value for '--seeds': "),
    (["--limit", "0"], "Invalid value for '--limit': "),
    (["--results", ""], "Invalid value for '--results': it is empty"),
    (["--results", " \t"], "Invalid value for '--results': it is empty"),
    (["--results", "a\0b"], "results 'a\\x00b': "),
    (["--results", "a\udcffb"], "results '"),
    (["--results", "gopher://results"], "results 'gopher://results': "),
    (["--results", "file://results"], "results 'file://results': "),
    (["--results", "~nobody-of-this-name/results"], "results '~nobody-of-this-name/results': "),
    (["--data-root", ""], "Invalid value for '--data-root': it is empty"),
    (["--prepared-root", ""], "Invalid value for '--prepared-root': it is empty"),
    (["--prepared-root", "a\0b"], "Invalid value for '--prepared-root': no path has a zero byte"),
    (["--no-such-option"], "No such option"),
    (["--limit"], "Option '--limit' requires an argument"),
]

LAUNCHES: list[tuple[list[str], str]] = [
    (["--set", "dataset=cardiology"], "cardiology needs the folder that holds "),
    (["--cpus-per-trial", "1000"], "--cpus-per-trial 1000: this machine has "),
    (["--cpus-per-trial", "-1"], "Invalid value for '--cpus-per-trial': -1.0: expected at least 0.01"),
    (["--cpus-per-trial", "inf"], "Invalid value for '--cpus-per-trial': inf: expected a finite number"),
    (["--gpus-per-trial", "inf"], "Invalid value for '--gpus-per-trial': inf: expected a finite number"),
    (["--gpus-per-trial", "1.5"], "Invalid value for '--gpus-per-trial': 1.5: expected 0, a share"),
    (["--device", "cuda"], "Invalid value for '--device': 'cuda' is not one of 'auto', 'cpu', 'gpu'"),
    (["--device", "cpu", "--gpus-per-trial", "1"], "--device cpu and --gpus-per-trial 1 are both given; expected one"),
    (["--nice", "20"], "Invalid value for '--nice': 20: expected at most 19"),
    (["--nice", "5", "--no-ray"], "--nice is for the workers of a Ray that the launch starts; instead, start the"),
    (["--epoch-timeout", "nan"], "Invalid value for '--epoch-timeout': nan: expected a finite number"),
    (["--epoch-timeout", "0"], "Invalid value for '--epoch-timeout': 0.0: expected more than 0"),
    (["--max-retries", "-1"], "Invalid value for '--max-retries': "),
    (["--shard", "17/16"], "Invalid value for '--shard': '17/16': expected i/n with i from 1 to n, such as 3/16"),
    (["--shard", ""], "Invalid value for '--shard': '': expected i/n"),
    (["--stop-after", "soon"], "Invalid value for '--stop-after': 'soon': expected a duration such as 3h55m"),
    (["--stop-status", "0"], "Invalid value for '--stop-status': 0 is not in the range 1<=x<=255"),
    (["--no-ray", "--ray"], "--ray and --no-ray are both given; expected one of them"),
    (["--no-ray", "--address", "auto"], "--no-ray and --address are both given; expected one of them"),
    (["--no-ray", "--epoch-timeout", "3"], "--epoch-timeout ends a worker of Ray, and --no-ray has none; expected one"),
    (["--checkpoint-every", "x"], "Invalid value for '--checkpoint-every': "),
    (["--retry", "all"], "Invalid value for '--retry': "),
    (["--address", " "], "Invalid value for '--address': it is empty"),
    (["--address", "nowhere"], "--address nowhere: 'nowhere' is not an address; expected auto or HOST:PORT"),
    (["--address", "a\x1b:1:2"], "--address a\\x1b:1:2: "),
    (["--results", "/proc/results"], "results /proc/results: cannot be written to"),
    (["--results", "space.py"], "results "),
]

OTHERS: list[tuple[list[str], str]] = [
    (["nothing"], "'nothing' is neither a search-space file (*.py) nor a subcommand; clops-sweep --help"),
    (["\x1b[2J\udcff"], "'\\x1b[2J\\udcff' is neither a search-space file (*.py) nor a subcommand; clops-sweep --help"),
    ([""], "'' is neither a search-space file (*.py) nor a subcommand; clops-sweep --help"),
    (["nothing.py"], "nothing.py: no such search-space file"),
    (["a\nb\x1b.py"], "a b\\x1b.py: no such search-space file"),
    (["plan"], "Missing argument 'SPACE.py ...'"),
    (["plan", ""], "Invalid value for 'SPACE.py ...': it is empty"),
    (["plan", "."], ".: no such search-space file"),
    (["plan", f"{LONG}.py"], "xxx"),
    (["plan", "space.py", "space.py"], "search spaces 's' and 's': their files would have one name"),
    (["plan", "space.py", "nothing.py"], "nothing.py: no such search-space file"),
    (["plan", "space.py", "--cpus-per-trial", "x"], "Invalid value for '--cpus-per-trial': 'x': expected a number"),
    (["status", "--results", "mistyped"], "results "),
    (["status", "--results", "space.py"], "results "),
    (
        ["space.py", "--keep", "predictions,models"],
        "Invalid value for '--keep': 'predictions,models': expected --keep predictions --keep models",
    ),
    (
        ["space.py", "--observe", "tensorboard,wandb"],
        "--observe 'tensorboard,wandb': no such observer (did you mean 'tensorboard'?); of several, expected an",
    ),
    (["status", "nothing.py"], "nothing.py: no such search-space file"),
    (["report", "--results", "mistyped"], "results "),
    (["status", "--where", "seed == 0"], "--where changes the runs of a search-space file; expected such a file"),
    (["status", "--limit", "3", "--json"], "--limit changes the runs of a search-space file; expected such a file"),
    (["status", "--set", "mc_samples=3"], "--set changes the runs of a search-space file; expected such a file"),
    (["report", "space.py", "--limit", "3"], "a report shows whole search spaces: it takes neither --limit nor --wh"),
    (["report", "--seeds", "3"], "--seeds changes the runs of a search-space file; expected such a file"),
    (["report", "space.py", "--axes", "a"], "--axes 'a': expected two names with a comma between them"),
    (["report", "space.py", "--axes", "a,b"], "no search space has an axis 'a'; there are storage_fraction"),
    (["report", "space.py", "--metric", "auc,"], "--metric 'auc,': expected names with commas between them"),
    (["report", "space.py", "--metric", ""], "Invalid value for '--metric': it is empty"),
    (
        ["report", "space.py", "--metric", "f1", "--metric", "aucc"],
        "metric 'aucc': not known (did you mean 'auc'?); t",
    ),
    (["report", "space.py", "--axes", ""], "--axes '': expected two names with a comma between them"),
    (
        ["report", "space.py", "--data-hash", "f"],
        "data hash 'f': the store has no edition whose data hash begins so; it has ",
    ),
    (["report", "--data-hash", ""], "Invalid value for '--data-hash': it is empty"),
    (["report", "space.py", "--output", ""], "Invalid value for '--output': it is empty"),
    (["report", "space.py", "--output", "space.py"], "report folder 'space.py': "),
    (["report", "space.py", "--output", "results"], "report folder 'results': "),
    (["report", "space.py", "--output", "results/runs"], "report folder 'results/runs': "),
    (["report", "space.py", "--output", "results/runs/deeper"], "report folder 'results/runs/deeper': "),
    (["report", "space.py", "--output", "results/.work"], "report folder 'results/.work': "),
    (["report", "space.py", "--output", "own"], "report folder 'own': "),
    (["report", "space.py", "--output", "x" * 300], "report folder 'xxx"),
    (["show"], "Missing argument 'RUN_ID'"),
    (["show", ""], "run '': no run of "),
    (["show", "zzz"], "run 'zzz': no run of "),
    (["show", "../../outside"], "run '../../outside': no run of "),
    (["show", f"../runs/finished-{RUN}"], "run '../runs/finished-"),
    (["show", "*"], "run '*': no run of "),
    (["rerun", "/etc/passwd"], "run '/etc/passwd': no run of "),
    (["rerun", LONG * 20], "run 'xxx"),
    (["show", "\x1b[2J\udcff"], "run '\\x1b[2J\\udcff': no run of "),
    (["show", RUN, "--results", " "], "Invalid value for '--results': it is empty"),
    (["rerun"], "Missing argument 'RUN_ID'"),
    (["rerun", "zzz"], "run 'zzz': no run of "),
    (["rerun", RUN, "--tolerance", "nan"], "Invalid value for '--tolerance': 'nan': expected a number from 0"),
    (["rerun", RUN, "--tolerance", "inf"], "Invalid value for '--tolerance': 'inf': expected a number from 0"),
    (["rerun", RUN, "--tolerance", "-1"], "Invalid value for '--tolerance': '-1': expected a number from 0"),
    (["rerun", RUN, "--tolerance", "x"], "Invalid value for '--tolerance': 'x': expected a number from 0"),
    (["rerun", RUN, "--device", "tpu"], "Invalid value for '--device': "),
    (["rerun", RUN, "--plugins", ""], "Invalid value for '--plugins': it is empty"),
    (["rerun", RUN, "--plugins", "nothing.py"], "nothing.py: no such search-space file"),
    (["rerun", RUN, "--plugins", "own.py"], "own.py raises Own"),
    (["check", "--results", "mistyped"], "results "),
    (["merge", "results", "mistyped"], "results "),
    (["merge", "results", ""], "Invalid value for '[OTHER]': it is empty"),
    (["check", "--results", ""], "Invalid value for '--results': it is empty"),
    (["check", "more"], "more: no such folder; expected a store, a search-space file, or a folder of them"),
    (["check", "a", "b"], "Got unexpected extra argument"),
    (["dashboard", "results"], "results: a folder is no search-space file (did you mean --results results?)"),
    (["new"], "Missing argument 'FILE'"),
    (["new", ""], "Invalid value for 'FILE': it is empty"),
    (["new", "name.txt"], "name.txt: a search-space file needs a name that ends in .py"),
    (["new", "space.py"], "space.py: exists already and is not replaced; choose another name"),
    (["new", "deeper/mine.py"], "deeper/mine.py: there is no folder deeper"),
    (["new", f"{LONG}.py"], "xxx"),
    (["new", "a\0.py"], "Invalid value for 'FILE': no path has a zero byte"),
    (["new", "mine.py", "--from", "papers"], "--from 'papers': no search-space file of that name comes with"),
    (["new", "mine.py", "--from", "\x1b[2J"], "--from '\\x1b[2J': no search-space file of that name comes with"),
    (["data", "nothing"], "'nothing' is not a subcommand; clops-sweep data --help lists them"),
    (["data", "prepare"], "Missing argument 'NAME|FILE.py'"),
    (["data", "prepare", "mitbi"], ""),
    (["data", "prepare", "\x1b[2J\udcff"], ""),
    (["data", "prepare", "mitbih", "--data-root", "mistyped"], "data root mistyped: there is no such folder"),
    (["data", "prepare", "mitbih", "--data-root", ""], "Invalid value for '--data-root': it is empty"),
    (["data", "prepare", "mitbih", "--on-error", "shrug"], "Invalid value for '--on-error': "),
    (["data", "prepare", "mitbih", "--split-seed", "-1"], "Invalid value for '--split-seed': "),
    (
        ["data", "prepare", "mitbih", "--data-root", ".", "--option", "no_such=1"],
        "mitbih has no option 'no_such'; its ",
    ),
    (["data", "prepare", "mitbih", "--data-root", ".", "--option", "frames_per_class=many"], "--option frames_per_"),
    (["data", "prepare", "mitbih", "--data-root", ".", "--option", "window_seconds=nan"], "mitbih: option window_se"),
    (["data", "prepare", "synthetic", "--option", "=1"], ""),
    (["data", "prepare", "synthetic", "--prepared-root", "space.py"], ""),
    (["data", "verify", "nothing"], ""),
    (["data", "verify", "mitbih", "--data-root", "mistyped"], ""),
    (["data", "download", "nothing", "--data-root", "own"], ""),
    (["data", "download", "mitbih"], "data download needs a folder for the files"),
    (["data", "download", "mitbih", "--data-root", "space.py"], ""),
    (["data", "list", "more"], "Got unexpected extra argument"),
    (["doctor", "--results", ""], "Invalid value for '--results': it is empty"),
    (["doctor", "--results", "gopher://results"], "results 'gopher://results': "),
    (["doctor", "--results", "a\0b"], "results 'a\\x00b': "),
    (["doctor", "--address", ""], "Invalid value for '--address': it is empty"),
    (["doctor", "more"], "Got unexpected extra argument"),
]


def _id(value: object) -> str:
    return ascii(value)[-40:]


def _tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, finished_tables: Tables) -> Path:
    """A folder with a search-space file, a store with one run, and files of the user's own; shared: nothing changes."""
    place = tmp_path_factory.mktemp("place")
    (place / "good.py").write_text(GOOD)
    (place / "own.py").write_text(raising("Own()"))
    (place / "own").mkdir()
    (place / "own" / "thesis.tex").write_text("years of work")
    write_finished(RunStore(place / "results"), RUN, finished_tables(RUN, RunConfig()))
    return place


@pytest.fixture(scope="module")
def prepared(prepared_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where nothing but `synthetic` is prepared; other tests of this process prepare other sets."""
    root = tmp_path_factory.mktemp("prepared")
    (root / "synthetic").symlink_to(prepared_root / "synthetic")
    return root


@pytest.fixture
def refused(place: Path, monkeypatch: pytest.MonkeyPatch, in_process: Command, prepared: Path) -> Refused:
    """Runs the command in this process, and returns its one sentence."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared))
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)
    monkeypatch.setattr(RunStore, "open_for_writing", lambda _: pytest.fail("workers would start"))

    def run(arguments: list[str], space: str = GOOD) -> str:
        (place / "space.py").write_text(space, "utf-8")
        before, began = _tree(place), time.monotonic()
        done = in_process(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert re.match("clops-sweep: .*\n", done.stderr)
        sentence = done.stderr.removeprefix("clops-sweep: ").removesuffix("\n")
        assert sentence.isprintable(), sentence
        assert len(sentence) < 400
        assert _tree(place) == before
        assert time.monotonic() - began < 20
        return sentence

    return run


def _begins(sentence: str, expected: str) -> None:
    assert sentence.startswith(expected), sentence


@pytest.mark.parametrize(("space", "expected"), SPACES, ids=_id)
def test_a_wrong_file(refused: Refused, space: str, expected: str) -> None:
    _begins(refused(["plan", "space.py"], space), expected)


@pytest.mark.parametrize(("space", "expected"), SPACES[::40], ids=_id)
def test_a_launch_of_a_wrong_file(refused: Refused, space: str, expected: str) -> None:
    _begins(refused(["launch", "space.py"], space), expected)


@pytest.mark.parametrize(("options", "expected"), SELECTIONS, ids=_id)
def test_a_wrong_selection(refused: Refused, options: list[str], expected: str) -> None:
    _begins(refused(["plan", "space.py", *options]), expected)


@pytest.mark.parametrize(("options", "expected"), LAUNCHES, ids=_id)
def test_a_wrong_launch(refused: Refused, options: list[str], expected: str) -> None:
    _begins(refused(["space.py", *options]), expected)


@pytest.mark.parametrize(("arguments", "expected"), OTHERS, ids=_id)
def test_a_wrong_command(refused: Refused, arguments: list[str], expected: str) -> None:
    _begins(refused(arguments), expected)


# --- places and files that cannot be used -----------------------------------------------------------------------------


TRIALS = search("max_concurrent=1", "{'batch_size': [8, 16]}")


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory: pytest.TempPathFactory, prepared_root: Path) -> Path:
    """A folder of results beside a study with one complete trial; shared: tests change copies of it."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "space.py").write_text(TRIALS)
    asked = Request(
        Selection.of(folder / "space.py"), PreparedData.found(prepared_root, None), RunStore(folder / "results")
    )
    asked.store.open_for_writing()
    (space,) = asked.selection.searches
    study = open_study(space, asked.store, data_hashes(asked, space))
    study.tell(study.ask(), "complete", [0.5])
    return folder / "results"


NOISE = (r"(?s).+", "\x01\n\x02\n")
DAMAGE = [
    (*NOISE, "JSONDecodeError: "),
    (r"\A.*\n", "{\n", "JSONDecodeError: "),
    (r"\A.*\n", "[]\n", "TypeError: "),
    (r'"definition":\{', '"definition":3,"x":{', "AssertionError: "),
    (r'"op_code":\d+', '"op_code":99', "AssertionError: "),
    (r'"param_value_internal":\d+', '"param_value_internal":77', "IndexError: "),
]


@pytest.mark.parametrize(("pattern", "replacement", "expected"), DAMAGE, ids=[it[2] + it[0] for it in DAMAGE])
def test_a_damaged_study(
    refused: Refused, tmp_path: Path, study_folder: Path, pattern: str, replacement: str, expected: str
) -> None:
    journal = shutil.copytree(study_folder, tmp_path / "results") / "optuna.journal"
    damaged, times = re.subn(pattern, replacement, journal.read_text(), count=1)
    assert times == 1
    journal.write_text(damaged)
    for verb in ("plan", "status", "launch"):
        sentence = refused([verb, "space.py", "--results", str(tmp_path / "results")], TRIALS)
        _begins(sentence, f"studies {journal}: damaged, or edited ({expected}")
        assert sentence.endswith("or move the file away: then searches begin anew, and finished runs stay")
