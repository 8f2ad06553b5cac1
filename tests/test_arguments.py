"""A wrong argument of a public function or class is one sentence that names the similar known one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clops_sweep
from clops_sweep import (
    Claim,
    Contrast,
    Criteria,
    Recording,
    Recordings,
    RunConfig,
    SearchSpace,
    Side,
    UsageError,
    dataset,
    network,
    open_frames,
    read,
    strategy,
    sweep,
)
from clops_sweep.arguments import named_arguments
from clops_sweep.experiment.spaces import distributions
from tests.helpers.preloaded import Preloaded

NOTHING = np.zeros((0, 1, 2))
OF_RESULTS = {
    "Batch", "Epoch", "EpochBatch", "EpochEnd", "FrameBatch", "FrameSet", "Frozen", "InstanceRecord", "Instances",
    "Learner", "Ledger", "ModelFacts", "Outcome", "Parameters", "Penalty", "Replay", "RunEnd", "TaskEnd",
    "TrainedModel", "Training", "UpdateReport",
}  # fmt: skip
"""Classes whose objects come from functions: users read them and do not make them."""
FOR_SUBCLASSES = {"Strategy", "FixedMemory", "UsageError"}
TAKES_ANY_NAME = {"from_mat", "from_npz"}
"""Readers whose further arguments are fields of the recording."""


def _public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions, classes and class methods that users call, by name."""
    for name in clops_sweep.__all__:
        member = getattr(clops_sweep, name)
        if name in OF_RESULTS | FOR_SUBCLASSES or not callable(member) or name in distributions.__all__:
            continue
        yield name, member
        for method, value in vars(member).items() if inspect.isclass(member) else ():
            if isinstance(value, classmethod) and not method.startswith("_"):
                yield f"{name}.{method}", getattr(member, method)


def test_a_usage_error_is_raised_from_the_public_call() -> None:
    with pytest.raises(UsageError, match="did you mean 'derpp'") as ours:
        RunConfig(strategy="der++")
    assert len(ours.traceback) == 2

    class Own(Sequence[int]):
        def __len__(self) -> int:
            raise UsageError("of the user")

        def __getitem__(self, position: Any) -> Any:
            raise UsageError("of the user")

    with pytest.raises(UsageError, match="of the user") as theirs:
        SearchSpace("own", RunConfig(), seeds=Own())
    assert any(entry.name in ("__len__", "__getitem__") for entry in theirs.traceback)


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in _public()])
def test_every_public_call_refuses_an_unknown_argument(
    call: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    with pytest.raises(UsageError) as error:
        call(**{"no_such_argument": 1})
    if name == "RunConfig":  # its keys are those of options, too
        assert "unknown key 'no_such_argument'" in str(error.value)
        return
    assert isinstance(error.value, TypeError)
    assert str(error.value).startswith(f"{name}: ")
    assert (
        name in TAKES_ANY_NAME or "no argument 'no_such_argument'; it takes" in str(error.value) or name == "strategy"
    )


MISSPELT = [
    (lambda: Recordings.from_wfdb("a", label="b", patients="c"), "Recordings.from_wfdb", "patients", "patient"),
    (lambda: Recordings.from_folder("a", sample_rate=1), "Recordings.from_folder", "sample_rate", "sampling_rate"),
    (lambda: Recordings.from_hdf5("a", patinet=1), "Recordings.from_hdf5", "patinet", "patient"),
    (lambda: Recordings([], 1, patient=1), "Recordings", "patient", "patients"),
    (lambda: Recordings([], 1, subject=1), "Recordings", "subject", "patients"),
    (lambda: Recordings([], 1, subjects=1), "Recordings", "subjects", "patients"),
    (lambda: Recordings([], 1, person=1), "Recordings", "person", "patients"),
    (lambda: Recordings([], 1, people=1), "Recordings", "people", "patients"),
    (lambda: Recordings([], 1, group={}), "Recordings", "group", "groups"),
    (lambda: Recordings.from_wfdb("a", label="b", subject="c"), "Recordings.from_wfdb", "subject", "patient"),
    (lambda: Recording([], subject="a"), "Recording", "subject", "patient"),
    (lambda: Recording([], lable="a"), "Recording", "lable", "label"),
    (lambda: Criteria(max_flip=0.1), "Criteria", "max_flip", "max_flips"),
    (lambda: SearchSpace("a", RunConfig(), axis={}), "SearchSpace", "axis", "axes"),
    (lambda: Claim("a", "b", Contrast(Side("a", {}), Side("b", {}), "auc"), mater=1), "Claim", "mater", "matters"),
    (lambda: sweep("a.py", dataroot="b"), "sweep", "dataroot", "data_root"),
    (lambda: dataset("a", licens="b"), "dataset", "licens", "licence"),
    (lambda: strategy("a", option={}), "strategy", "option", "options"),
    (lambda: network("a", option={}), "network", "option", "options"),
    (lambda: read("a", colums=[]), "read", "colums", "columns"),
]


@pytest.mark.parametrize(("call", "name", "given", "meant"), MISSPELT, ids=[name for _, name, *_ in MISSPELT])
def test_the_similar_argument_is_named(call: Callable[[], object], name: str, given: str, meant: str) -> None:
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value) == f"{name}: no argument {given!r} (did you mean {meant!r}?)"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: RunConfig(strategie="er"), "unknown key 'strategie' (did you mean 'strategy'?)"),
        (lambda: SearchSpace("a"), "SearchSpace: base is missing; expected base=..."),
        (
            lambda: Recordings(NOTHING, 1, ["a"], "V", labels=["sit", "lie", "sit"], patients=None),
            "Recordings: classes is missing; expected classes=[...]; the labels are lie, sit",
        ),
        (
            lambda: Recordings(NOTHING, 1, ["a"], "V", np.array([1, 0, 10]), patients=None),
            "Recordings: classes is missing; expected classes=[...]; the labels are 0, 1, 10",
        ),
        (
            lambda: Recordings(NOTHING, 1, ["a"], "V", labels=np.eye(2), patients=None),
            "Recordings: classes is missing; expected classes=...",
        ),
        (
            lambda: Recordings(NOTHING, 1, ["a"], "V", labels=[["a"], ["a", "b"]], patients=None),
            "Recordings: classes is missing; expected classes=...",
        ),
        (
            lambda: Recordings(NOTHING, 1, ["a"], "V", labels=[0, 1], classes=["lie", "sit"]),
            "Recordings: patients is missing; expected patients=[...], or patients=None if they are unknown: each "
            "recording then counts as a person",
        ),
        (lambda: Claim(), "Claim: key, sentence, contrasts are missing; expected key=..."),
        (
            lambda: SearchSpace("a", RunConfig(), base=RunConfig()),
            "SearchSpace: base is given by position and by name; leave one out",
        ),
        (lambda: RunConfig("mitbih"), "RunConfig: 1 argument without a name; expected all by name"),
        (
            lambda: sweep("a.py", "results", 3),
            "sweep: 3 arguments without a name; expected at most 2, the others by name",
        ),
    ],
)
def test_the_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value) == sentence


def test_a_type_error_within_a_function_stays() -> None:
    @named_arguments
    def join(texts: list[str]) -> str:
        return "".join(texts)

    with pytest.raises(TypeError, match="expected str instance"):
        join([1])  # type: ignore[list-item]
    assert join(["a", "b"]) == "ab"
    assert list(inspect.signature(join).parameters) == ["texts"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ('SPACE = SearchSpace("a", RunConfig(), sed=[1])', "SearchSpace: no argument 'sed' (did you mean 'seeds'?)"),
        ('@dataset("own", file=["a"])\ndef own(data_root): ...', "dataset: no argument 'file' (did you mean 'files'?)"),
    ],
)  # fmt: skip
def test_in_a_search_space_file(
    call: str, sentence: str, tmp_path: Path, environment: dict[str, str], commands: Preloaded
) -> None:
    text = f"from clops_sweep import *\nfrom clops_sweep import RunConfig, SearchSpace, dataset\n{call}\n"
    (tmp_path / "space.py").write_text(text)
    done = commands.run(tmp_path, environment, "plan", "space.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"clops-sweep: space.py: {sentence}\n"


def test_in_the_function_of_a_data_set(tmp_path: Path, environment: dict[str, str], commands: Preloaded) -> None:
    (tmp_path / "space.py").write_text(
        "from clops_sweep import Recordings, RunConfig, SearchSpace, dataset\n"
        '@dataset("own")\n'
        "def own(data_root):\n"
        '    return Recordings.from_wfdb(data_root, label="a", labels="b")\n'
        'SPACE = SearchSpace("a", RunConfig(dataset="own"))\n'
    )
    done = commands.run(tmp_path, environment, "data", "prepare", "own", "--plugins", "space.py")
    assert done.returncode == 2
    assert done.stderr.endswith("dataset 'own': Recordings.from_wfdb: no argument 'labels' (did you mean 'label'?)\n")


def test_frames_cannot_be_opened_by_another_name() -> None:
    with pytest.raises(TypeError, match="open_frames: no argument 'data_rot'"):
        open_frames("synthetic", data_rot=".")
