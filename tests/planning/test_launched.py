"""The search spaces that a store remembers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace
from clops_sweep.analysis.dashboard.app import Dashboard
from clops_sweep.analysis.dashboard.server import Server
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.spaces.search_space import ReportedGrid
from clops_sweep.experiment.spaces.selection import Selection, file_name
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.planning.launched import LaunchedFile, launched_files, launched_spaces, left_out_spaces, remember
from clops_sweep.planning.request import Request
from clops_sweep.store.run_store import RunStore

OWN = """
from clops_sweep import RunConfig, SearchSpace, Strategy, strategy

@strategy("mine")
class Mine(Strategy):
    def loss(self, batch):
        return self.criterion(self.model(batch.x), batch.y)

SPACE = SearchSpace("a study", RunConfig(), {"strategy": ["finetune", "mine"]}, seeds=1)
"""
SHIPPED = Path(__file__).parents[2] / "search_spaces"

DAMAGED = "damaged; delete it, and the next launch of its search space writes it again"
BASE = RunConfig(dataset="synthetic", scenario="class_il", task_order=(2, 1, 0))

NAMES = [("ab c", "finetune"), ("ab-c", "si")]
DIVISIONS = [((0, 1), (2, 3, 4)), ((0, 1, 2), (3, 4))]


def _remembered(store: RunStore) -> list[SearchSpace]:
    return sorted(launched_spaces(store, str), key=lambda space: space.name)


@pytest.mark.parametrize("name", ["quickstart", "class_il_grid", "task_order", "mir_grid"])
def test_shipped_spaces_come_back_with_the_same_requests(name: str, tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    spaces = [space for space in load_spaces(SHIPPED / f"{name}.py") if space.search is None]
    remember(Selection(tuple(spaces)), store)
    found = _remembered(store)
    for space, again in zip(sorted(spaces, key=lambda it: it.name), found, strict=True):
        assert (again.name, dict(again.axes)) == (space.name, dict(space.axes))
        assert list(again.requests()) == list(space.requests())


def test_left_out_cells_and_settings_are_remembered(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    variants = {"CLOPS": {}, "Random": {"storage_order": "random"}}
    space = SearchSpace(
        *("mine", BASE, {"storage_fraction": [0.1, 0.5], "variant": variants}, 2),
        where=lambda config: config.seed == 0 or config.storage_order == "random",
    )
    remember(Selection((space,)), store)
    remember(Selection((space,), settings={"epochs_per_task": 3}, seeds=1), store)
    plain, changed = _remembered(store)
    assert [it.config for it in plain.requests()] == [it.config for it in space.requests()]
    assert len(list(plain.requests())) == 6
    assert changed.name == "mine, epochs_per_task=3"
    assert {it.config.epochs_per_task for it in changed.requests()} == {3}
    remember(Selection((replace(space, where=None),)), store)
    assert [len(list(it.requests())) for it in _remembered(store)] == [8, 4]


def test_a_launch_with_fewer_seeds_keeps_the_others(tmp_path: Path) -> None:
    """Finished runs of the other seeds were shown a second time, as runs of no search space."""
    store = RunStore(tmp_path)
    space = SearchSpace("mine", BASE, {"storage_fraction": [0.1, 0.5]}, 3)
    remember(Selection((space,)), store)
    remember(Selection((space,), seeds=1), store)
    (same,) = _remembered(store)
    assert list(same.requests()) == list(space.requests())
    some = replace(space, where=lambda config: config.storage_fraction == 0.5)
    remember(Selection((some,)), store)
    remember(Selection((some,), seeds=2), store)
    (kept,) = _remembered(store)
    assert list(kept.requests()) == list(some.requests())
    other = replace(space, base=BASE.replace(epochs_per_task=3))
    remember(Selection((other,), seeds=1), store)
    (changed,) = _remembered(store)
    assert len(list(changed.requests())) == 2, "of another definition"
    (file,) = (tmp_path / ".work" / "spaces").iterdir()
    file.write_text('{"name": "mine"}')
    remember(Selection((space,), seeds=1), store)
    (again,) = _remembered(store)
    assert len(list(again.requests())) == 2, "a damaged file is replaced"


CLASSES = RunConfig(scenario="class_il_union")
SETTINGS: list[dict[str, object]] = [{"learning_rate": 1e-3}, {"learning_rate": 1e-4}]


@pytest.mark.parametrize(
    "selections",
    [
        [Selection((SearchSpace("a" * 88, RunConfig(), seeds=1),), settings=settings) for settings in SETTINGS],
        [Selection((SearchSpace(name, RunConfig(), {"strategy": ["er", other]}, 1),)) for name, other in NAMES],
        [Selection((SearchSpace("s", CLASSES, seeds=1),), settings={"task_classes": it}) for it in DIVISIONS],
    ],
    ids=["long name", "punctuation of names", "punctuation of settings"],
)
def test_no_space_replaces_another_one(selections: list[Selection], tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for selection in [*selections, *selections]:
        remember(selection, store)
    found = {request.config for space in _remembered(store) for request in space.requests()}
    assert found == {request.config for selection in selections for request in selection.requests}
    assert len({file_name(space.name) for space in _remembered(store)}) == len(selections)
    assert left_out_spaces(store, str) == []


FILE = """
from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side

BASE = RunConfig(dataset="synthetic", epochs_per_task={epochs})
SPACE = SearchSpace("study", BASE, {{"strategy": ["finetune", "er"]}})
ER, FINETUNE = Side("er", {{"strategy": "er"}}), Side("finetune", {{"strategy": "finetune"}})
CLAIMS = [Claim("helps", "Replay helps", Contrast(ER, FINETUNE, "test_auc"))]
"""


def test_spaces_of_one_name_from_two_files_are_both_kept(tmp_path: Path) -> None:
    """The newer one replaced the other, whose runs lost their experiment."""
    store = RunStore(tmp_path / "results")
    one, other, copy = tmp_path / "one.py", tmp_path / "other.py", tmp_path / "copy.py"
    one.write_text(FILE.format(epochs=2))
    other.write_text(FILE.format(epochs=3))
    copy.write_text(FILE.format(epochs=2))
    for file in (one, other, one, copy, other):
        remember(Selection.of_files([file]), store)
    first, second = _remembered(store)
    assert {first.base.epochs_per_task, second.base.epochs_per_task} == {2, 3}
    assert first.name == "study"
    assert second.name.startswith("study ")
    one.write_text(FILE.format(epochs=4))
    copy.unlink()
    remember(Selection.of_files([one]), store)
    epochs = {space.base.epochs_per_task for space in _remembered(store)}
    assert epochs == {3, 4}, "an edited file replaces what it asked for"
    other.rename(tmp_path / "moved.py")
    remember(Selection.of_files([tmp_path / "moved.py"]), store)
    assert sorted(space.base.epochs_per_task for space in _remembered(store)) == [3, 4], "a moved file is no third one"


def test_files_of_launches_and_their_claims_are_remembered(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    assert launched_files(store) == []
    file = tmp_path / "one.py"
    file.write_text(FILE.format(epochs=2))
    remember(Selection.of_files([file]), store)
    assert launched_files(store) == [LaunchedFile(file.resolve(), ("Replay helps",))]


def test_the_fields_that_tuning_chose_are_remembered(tmp_path: Path) -> None:
    """Without its file, a report compared the methods of a tuned space as if their learning rates were an oversight."""
    store = RunStore(tmp_path / "results")
    axes = {"method": {"er": {"strategy": "er", "learning_rate": 0.01}, "finetune": {"strategy": "finetune"}}}
    tuned = ReportedGrid("tuned", BASE, axes, seeds=1, tuned_fields={"er": ("learning_rate",), "finetune": ()})
    remember(Selection((), reported=(tuned,)), store)
    (again,) = _remembered(store)
    assert list(again.requests()) == list(tuned.requests())
    assert isinstance(again, ReportedGrid)
    assert again.tuned_fields_at({"method": "er"}) == {"learning_rate"}
    assert again.tuned_fields_at({"method": "finetune"}) == frozenset()


def test_a_file_of_an_earlier_version_stays_in_use(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    remember(Selection((SearchSpace("ab-c", BASE, seeds=3),)), store)
    (file,) = (tmp_path / ".work" / "spaces").iterdir()
    content = json.loads(file.read_text())
    del content["digest"]
    file.with_name("space-ab-c.json").write_text(json.dumps(content))
    file.unlink()
    (space,) = _remembered(store)
    assert (space.name, len(space.seeds)) == ("ab-c", 3)
    remember(Selection((SearchSpace("ab-c", BASE, seeds=3),), seeds=1), store)
    remember(Selection((SearchSpace("ab c", BASE, seeds=1),)), store)
    assert sorted(len(space.seeds) for space in _remembered(store)) == [1, 3]
    assert file.with_name("space-ab-c.json").exists()


def test_searches_and_configs_as_encoders_are_left_out(tmp_path: Path) -> None:
    store, search = RunStore(tmp_path), OptunaSearch({"storage_fraction": FloatDistribution(0.1, 1.0)}, n_trials=2)
    axes = {"encoder": [BASE.replace(seed=7)], "network": ["linear", "mlp"]}
    heads = SearchSpace("heads", BASE, axes, where=lambda config: config.network == "mlp")
    remember(Selection((SearchSpace("search", BASE, search=search), heads)), store)
    assert _remembered(store) == []


NOT_REGISTERED = {
    str({"base": {"dataset": "nowhere"}}): (("dataset", "nowhere"),),
    str({"base": {"strategy": "not_registered"}}): (("strategy", "not_registered"),),
    str({"axes": {"network": ["away"]}}): (("network", "away"),),
    str({"axes": {"kind": {"a": {"encoder": "away"}}}}): (("encoder", "away"),),
    str({"name": "", "base": {"dataset": "nowhere"}}): (("dataset", "nowhere"),),
}
"""What remembered spaces name that is not registered here."""


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": {"network": ["away"]}},
        {"axes": {"kind": {"a": {"encoder": "away"}}}},
        {"base": {"dataset": "nowhere"}},
        {"base": ["er"]},
        {"base": {"strategy": "not_registered"}},
        {"axes": {"storage_fraction": []}},
        {"axes": 3},
        {"kept": 7},
        {"seeds": [-1]},
        {"name": "../../x"},
        {"name": "", "base": {"dataset": "nowhere"}},
        {"name": None},
        {"name": "a\x1b[31m"},
    ],
)
def test_other_files_are_left_out_and_named(changes: dict[str, object], tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    remember(Selection((SearchSpace("mine", BASE, seeds=1),)), store)
    (file,) = (tmp_path / ".work" / "spaces").iterdir()
    content = json.loads(file.read_text())
    file.with_name("space-other.json").write_text(json.dumps(content | {"name": "other"} | changes))
    file.with_name("space-cut.json").write_bytes(file.read_bytes()[:-9])
    assert [it.name for it in _remembered(store)] == ["mine"]
    cut, other = left_out_spaces(store, str)
    assert cut.name is None
    assert cut.why == f"{file.with_name('space-cut.json')}: {DAMAGED}"
    if other.name is None:
        assert other.why == f"{file.with_name('space-other.json')}: {DAMAGED}"
    else:
        assert other.name == str(changes.get("name", "other"))
        assert re.search("expected|known|no values", other.why)
        assert other.unknown == NOT_REGISTERED.get(str(changes), ())


def test_a_remembered_space_that_cannot_be_read_is_named_by_the_dashboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    store = RunStore(tmp_path / "results")
    remember(Selection((SearchSpace("mine", BASE, seeds=1),)), store)
    (file,) = (tmp_path / "results" / ".work" / "spaces").iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    monkeypatch.setattr(Server, "serve", _interrupted)
    shown = CliRunner().invoke(command, ["dashboard", "--results", str(tmp_path / "results"), "--port", "0"])
    assert f"A search space is not shown, only its runs by their settings: {file}: {DAMAGED}" in shown.stderr


def test_a_folder_of_remembered_spaces_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / ".work").mkdir()
    (tmp_path / ".work" / "spaces").write_text("no folder")
    (left_out,) = left_out_spaces(RunStore(tmp_path), str)
    assert left_out.name is None
    assert f"results {tmp_path}: cannot be read (" in left_out.why
    assert ".work/spaces" in left_out.why


def _interrupted(server: Server) -> None:
    server.close()
    raise KeyboardInterrupt


def test_a_space_with_an_own_method_is_named_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    file = tmp_path / "own.py"
    file.write_text(OWN)
    store = RunStore(tmp_path / "results")
    (space,) = load_spaces(file)
    remember(Selection((space,)), store)
    assert [it.name for it in _remembered(store)] == ["a study"]
    asked = Request(Selection(()), PreparedData(tmp_path), store)
    assert asked.left_out_spaces() == []
    remember(Selection((replace(space, seeds=(1, 2)),)), store)
    STRATEGIES.forget("mine")
    assert _remembered(store) == []
    (left_out,) = asked.left_out_spaces()
    assert left_out.name == "a study"
    assert left_out.unknown == (("strategy", "mine"),)
    assert "strategy = 'mine': not known" in left_out.why
    monkeypatch.setattr(Server, "serve", _interrupted)
    shown = CliRunner().invoke(command, ["dashboard", "--results", str(tmp_path / "results"), "--port", "0"])
    (notice,) = (line for line in shown.stderr.splitlines() if "'a study'" in line)
    assert notice.startswith("clops-sweep: Search space 'a study' is not shown")
    assert "by their settings: its file is not loaded (strategy = 'mine': not known). " in notice
    assert notice.endswith("--plugins FILE registers what a file declares.")
    dashboard = Dashboard(FollowedStore(store, StoreSource(store, lambda key: None), 0), [notice])
    assert "Search space &#39;a study&#39; is not shown, only its runs" in (dashboard.page("", {}) or "")
    dashboard.close()
