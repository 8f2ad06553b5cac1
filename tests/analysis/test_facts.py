"""Runs that differ in one field or option alone are equally trained, or of equal cost, as its facts say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from clops_sweep import FloatOption, RunConfig, SearchSpace, Strategy, strategy
from clops_sweep.analysis.as_stored import recorded_experiments
from clops_sweep.analysis.claims.claim_runs import FinishedRuns
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.tables.best import best_configurations
from clops_sweep.analysis.tables.strategies import compare_strategies
from clops_sweep.errors import UsageError
from clops_sweep.execution.display.best_cell import BestCell
from clops_sweep.execution.display.time_left import TimeLeft
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import FACTS
from clops_sweep.experiment.fields import any_replicate, equally_trained, facts_of
from clops_sweep.experiment.plugins.options import OPTIONS, registry_of, scalar
from clops_sweep.experiment.plugins.registry import BUILT_IN, REGISTRIES, STRATEGIES, USERS
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Side
from clops_sweep.experiment.spaces.run_names import RunName
from clops_sweep.planning.costs import estimate, kind_of, kind_of_row
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore
from tests.helpers.at_night import mostly_at_night

SUBJECTS = {"scenario": "subject_il", "dataset": "mitbih"}
ONLINE = {"stream": "online"}
GIVEN = {"learning_rate": 1e-3, "batch_size": 16, "epochs_per_task": 20}
"""Fields whose defaults depend on others."""

FIELDS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "scenario": (GIVEN, "class_il", "class_il_union"),
    "dataset": (GIVEN, "synthetic", "cardiology"),
    "strategy": ({}, "finetune", "mas"),
    "task_classes": ({}, ((0, 1), (2, 3)), ((0, 2), (1, 3))),
    "domain": ({"scenario": "domain_il"}, "lead", "sex"),
    "split_within": (SUBJECTS, "people", "time"),
    "people_per_task": (SUBJECTS, None, 3),
    "people_order": (SUBJECTS, None, 3),
    "task_order": ({}, "sequential", 3),
    "blurry": ({}, 0.0, 0.1),
    "stream": ({}, "epochs", "online"),
    "steps_per_batch": (ONLINE, 1, 2),
    "prequential_window": (ONLINE, 500, 100),
    "first_tasks": ({}, None, 2),
    "epochs_per_task": ({}, 20, 10),
    "batch_size": ({}, 16, 32),
    "learning_rate": ({}, 1e-3, 1e-4),
    "optimizer": ({}, "adam", "sgd"),
    "weight_decay": ({}, 0.0, 0.1),
    "schedule": ({}, "constant", "cosine"),
    "precision": ({}, "float32", "bfloat16"),
    "early_stopping": ({}, None, 3),
    "normalize": ({}, "none", "zscore"),
    "leads": (SUBJECTS, "single", "all"),
    "encoder": ({"network": "linear"}, None, "minirocket"),
    "lora_rank": ({"network": "linear", "encoder": "minirocket"}, 0, 4),
    "network": ({}, "clops_cnn", "small_cnn"),
    "norm": ({}, "batch", "layer"),
    "head": ({}, "linear", "cosine"),
    "split_seed": ({}, 0, 1),
    "seed": ({}, 0, 1),
    "class_weights": ({}, None, "balanced"),
    "augment": ({}, None, "jitter"),
    "weight_seed": ({}, None, 3),
    "split": ({}, "fold:1/5", "fold:2/5"),
    "stratify": ({}, "site", "sex"),
    "validation": ({}, None, 0.1),
    "curves": ({}, None, "test"),
    "start_from": ({}, None, f"run:{'0' * 24}"),
}
"""For each field: the other settings, and two of its values."""


def _users(name: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of configs that use an option."""
    for owner in sorted(OPTIONS.owners(name)):
        kind, plugin = owner.replace("'", "").split(" ")
        settings = {kind: plugin} if kind in USERS else {"strategy": "clops", kind: plugin}
        yield settings | ({"ewc_online": True} if name == "ewc_decay" else {})  # without effect otherwise


def _values(name: str, config: RunConfig) -> tuple[Any, Any]:
    """Return two values of an option."""
    option = OPTIONS[name]
    kind = scalar(option.annotation)
    if registry := registry_of(option):
        one, other, *_ = REGISTRIES[registry]
        return one, other
    if kind is bool:
        return False, True
    if kind is str:
        one, other, *_ = get_args(option.annotation)
        return one, other
    default = config.default_of(name)
    if default is None:
        return 5, 6
    return default, default + 1 if kind is int else default / 2


def _pairs(name: str) -> Iterator[tuple[RunConfig, RunConfig]]:
    """Yield pairs of configs that differ in one field or option alone."""
    if name in FIELDS:
        settings, one, other = FIELDS[name]
        for method in ("finetune", "er"):
            base = {"strategy": method, **settings}
            yield RunConfig(**{**base, name: one}), RunConfig(**{**base, name: other})
        return
    for settings in _users(name):
        of = _values(name, RunConfig(**settings))
        one, other = (RunConfig(**settings, **{name: value}) for value in of)
        yield one, other


NAMES = [*FACTS, *BUILT_IN]
SOME = ("dataset", "strategy", "seed", "batch_size", "curves", "ewc_strength", "memory_size", "replay_ratio")
"""One or two of each kind of facts: the others have the same, and take the same way through a store."""


def test_every_field_has_its_facts_and_two_values_here() -> None:
    fields = RunConfig.model_fields
    assert [name for name, it in fields.items() if "facts" not in (it.json_schema_extra or {})] == []
    assert FIELDS.keys() == fields.keys()


@pytest.mark.parametrize("name", NAMES)
def test_runs_that_differ_in_one_field_alone(name: str) -> None:
    facts = facts_of(name)
    for one, other in _pairs(name):
        shared = [*FACTS, *(one.options.keys() & other.options.keys())]
        assert [it for it in shared if one.get(it) != other.get(it)] == [name]
        assert equally_trained(one, other) == facts.equal_training
        assert equally_trained(other, one) == facts.equal_training
        assert (kind_of(one) == kind_of(other)) == facts.equal_cost
        assert [kind_of_row(config_row(it)) for it in (one, other)] == [kind_of(one), kind_of(other)]
        assert (one.data_key == other.data_key) == (not facts.prepared)
        assert (any_replicate(one) == any_replicate(other)) == facts.replicate
        best = BestCell()
        best.add(RunName.of("a run"), one, {"auc": 0.5})
        best.add(RunName.of("another"), other, {"auc": 0.6})
        assert ("2 runs)" if facts.replicate else "1 run)") in str(best)
        left = TimeLeft([one, one, other])
        left.ended([one], 10)
        left.ended([other], 30)
        assert left.seconds(1) == (20 if facts.equal_cost else 10)


@pytest.mark.parametrize("name", mostly_at_night(NAMES, SOME.__contains__))
def test_estimates_experiments_and_claims_over_stored_runs(name: str, tmp_path: Path, generated: ModuleType) -> None:
    one, other = next(_pairs(name))
    facts = facts_of(name)
    store = RunStore(tmp_path)
    generated.write_given_runs(store, [(one, {"auc": 0.5, "seconds": 7.0})])
    finished = PlannedRun(next(iter(store.statuses())), one, "finished")
    cost = estimate([PlannedRun("0" * 24, other, "pending")], [finished], store)
    assert (cost.known, len(cost.unknown)) == ((1, 0) if facts.equal_cost else (0, 1))
    assert cost.hours == pytest.approx(7 / 3600 if cost.known else 0)
    to_come = estimate([PlannedRun(None, other, "pending")], [finished], store)
    assert to_come.known == (name not in FACTS or facts.equal_cost), "a search may ask for any options"

    generated.write_given_runs(store, [(other, {"auc": 0.6})])
    experiments = recorded_experiments(store.read("runs"))
    assert sum(len(it.cells) for it in experiments) == (1 if facts.replicate else 2)
    if name in ("strategy", "scenario", "dataset"):
        return
    contrast = Contrast(Side("ours", {"strategy": one.strategy}), None, "auc")
    claim = Claim("key", "A sentence.", (contrast,), scenario=one.scenario, dataset=one.dataset)
    ((found,),) = FinishedRuns(experiments, store).about([claim]).values()
    pairs = found.contrasts[0].pairs
    assert (len(pairs), max(map(len, pairs.values()))) == ((2, 1) if facts.replicate else (1, 2))


COMPARED = [name for name, facts in FACTS.items() if facts.decides not in ("draw", "method")]


@pytest.mark.parametrize("name", mostly_at_night(COMPARED, ("dataset", "batch_size", "augment", "curves").__contains__))
def test_a_report_compares_strategies_that_are_trained_equally(
    name: str, tmp_path: Path, generated: ModuleType
) -> None:
    settings, first, second = FIELDS[name]
    plain = SearchSpace("plain", RunConfig(**{**settings, "strategy": "finetune", name: first}), seeds=range(4))
    alike, another = (
        SearchSpace("replay", RunConfig(**{**settings, "strategy": "er", name: value}), seeds=range(4))
        for value in (first, second)
    )
    for space, compared in ((alike, True), (another, FACTS[name].equal_training)):
        store = RunStore(tmp_path / str(compared))
        configs = [it.config for of in (plain, space) for it in of.requests()]
        generated.write_given_runs(store, [(it, {"auc": 0.5 + it.seed / 10, "bwt": 0.1}) for it in configs])
        experiments = collect([plain, space], store.read("runs"))
        assert bool(compare_strategies(experiments)) == compared
        (best,) = best_configurations(experiments[1], experiments[:1])
        assert (best.above is not None) == compared


class Own(Strategy):
    """Fine-tuning, registered with options."""

    def loss(self, batch: Any) -> Any:
        return batch.losses.mean()


@pytest.fixture
def own() -> Iterator[None]:
    """Two strategies with an option that states no facts and one that states them."""
    options = {
        "plain_factor": FloatOption(1.0, gt=0),
        "stated_factor": FloatOption(1.0, gt=0, equal_training=True, equal_cost=True),
    }
    strategy("of_facts", options=options)(Own)
    strategy("also_of_facts", options=tuple(options))(Own)
    yield
    for name in ("of_facts", "also_of_facts"):
        STRATEGIES.forget(name)


@pytest.mark.usefixtures("own")
def test_options_that_state_nothing_are_taken_for_different() -> None:
    one, other = RunConfig(strategy="of_facts"), RunConfig(strategy="also_of_facts")
    assert equally_trained(one, other)
    for name, alike in (("plain_factor", False), ("stated_factor", True)):
        changed = other.replace(**{name: 2.0})
        assert equally_trained(one, changed) == alike
        assert (kind_of(other) == kind_of(changed)) == alike
        assert equally_trained(RunConfig(strategy="finetune"), changed), "an option that only one has is its method's"


@pytest.mark.usefixtures("own")
def test_a_report_chooses_configurations_that_share_their_options(tmp_path: Path, generated: ModuleType) -> None:
    spaces = [
        SearchSpace("one", RunConfig(strategy="of_facts"), seeds=range(4)),
        SearchSpace("other", RunConfig(strategy="also_of_facts"), {"plain_factor": [2.0, 1.0]}, seeds=range(4)),
    ]
    store = RunStore(tmp_path)
    configs = [it.config for of in spaces for it in of.requests()]
    generated.write_given_runs(store, [(it, {"auc": 0.5 + it.seed / 10, "bwt": 0.1}) for it in configs])
    (record,) = compare_strategies(collect(spaces, store.read("runs")))
    assert record.configurations == ("plain_factor = 1", "one")


@pytest.mark.usefixtures("own")
def test_a_definition_with_other_facts_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'of_facts', with default 1.0, .* equal_cost=False"):
        strategy("third_of_facts", options={"plain_factor": FloatOption(1.0, gt=0, equal_cost=True)})(Own)
