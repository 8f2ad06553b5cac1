"""Methods defined by a loss: numbers of fine-tuning, gradients of several passes, resuming, and errors."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import clops_sweep
from clops_sweep import ContinualRun, Memory, Reservoir, Strategy, native, strategy
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.learning import streams
from clops_sweep.learning.global_streams import seed_of
from clops_sweep.learning.networks.dropout import PaperDropout
from clops_sweep.learning.networks.network import PaperNetwork
from clops_sweep.testing import check_strategy, tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference, saved_and_loaded
from tests.learning.kernels import KERNELS

VARIANTS = [*KERNELS, "off"]


class Plain(Strategy):
    def loss(self, batch: Any) -> torch.Tensor:
        return self.criterion(self.model(batch.x), batch.y, batch.weights)


class Own(Strategy):
    """A method whose methods a test sets."""

    setting_up: ClassVar[Any] = staticmethod(lambda self: None)
    losing: ClassVar[Any] = staticmethod(Plain.loss)
    ending: ClassVar[Any] = staticmethod(lambda self, task: None)

    def setup(self) -> None:
        type(self).setting_up(self)

    def loss(self, batch: Any) -> Any:
        return type(self).losing(self, batch)

    def end_task(self, task: int) -> None:
        type(self).ending(self, task)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the run of a method with the given loss and set-up."""

    def run(loss: Any = None, setup: Any = None, end: Any = None, **settings: Any) -> ContinualRun:
        for name, part in (("losing", loss), ("setting_up", setup), ("ending", end)):
            if part is not None:
                monkeypatch.setattr(Own, name, staticmethod(part))
        return ContinualRun(tiny_config("class_il", strategy="own", **settings), tiny_frames("class_il"))

    with STRATEGIES.temporarily("own", Own):
        yield run


def small(channels: int, samples: int, outputs: int) -> torch.nn.Module:
    layers = [
        torch.nn.Conv1d(channels, 4, 7, stride=5),
        torch.nn.BatchNorm1d(4),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.2),
    ]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool1d(3), torch.nn.Flatten(), torch.nn.Linear(12, outputs))


@pytest.mark.parametrize("settings", [{}, {"class_weights": "balanced"}, {"network": "small_for_a_test"}], ids=str)
@pytest.mark.parametrize("scenario", ["class_il", "class_il_union", "domain_il"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_criterion_alone_is_fine_tuning(
    variant: str, scenario: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, variant)
    with STRATEGIES.temporarily("plain", Plain), NETWORKS.temporarily("small_for_a_test", small):
        mine, built_in = (
            ContinualRun(tiny_config(scenario, strategy=name, **settings), tiny_frames(scenario)).run()
            for name in ("plain", "finetune")
        )
    assert result_difference(mine, built_in, ignore=("run_id", "strategy", "plugins")) is None
    assert mine.runs["backend"].tolist() == built_in.runs["backend"].tolist()


def by_two_passes(self: Any, batch: Any) -> torch.Tensor:
    logits, shifted = self.model(batch.x), self.model(0.5 * batch.x)
    return _of_two_passes(logits, shifted, self.predict(batch.x), self.parameters)


def _of_two_passes(
    logits: torch.Tensor, shifted: torch.Tensor, other: torch.Tensor, parameters: torch.Tensor
) -> torch.Tensor:
    apart = (logits - shifted).square().mean() + 0.1 * (shifted - other).square().mean()
    return F.softplus(logits).mean() + apart + 1e-2 * parameters.square().sum()


@pytest.mark.parametrize("variant", VARIANTS)
def test_several_passes_predictions_and_parameters_add_up(
    variant: str, own: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first gradient, against that of the same loss by autograd in float64."""
    monkeypatch.setenv(native.ENVIRONMENT, variant)
    run = own(by_two_passes, batch_size=6)
    learner, gradients = run.learner, []
    apply = learner.apply
    monkeypatch.setattr(learner, "apply", lambda gradient: (gradients.append(gradient.clone()), apply(gradient)))
    run.advance()
    seed = run.config.seed
    rows = run.tasks[0].rows
    order = streams.permutation(seed, len(rows), "batch order", 0, 0)[:6]
    x = learner.bank.gather(rows[order]).view(6, 1, -1).double()
    module = PaperNetwork(1, 2500, learner.outputs)
    module.draw(seed, 0)
    module.double()
    first = streams.keys(seed, "training dropout", 0, 0)
    second = streams.keys(seed, "training dropout of further passes", 0, 0, 1)
    passes = []
    for frames, keys in ((x, first), (0.5 * x, second)):
        with PaperDropout(keys, torch.arange(6)):
            passes.append(module(frames))
    parameters = [parameter for _, parameter in module.named_parameters()]
    with torch.no_grad():
        evaluated = module.eval()(x)
    module.train()
    _of_two_passes(*passes, evaluated, torch.cat([it.flatten() for it in parameters])).backward()
    expected = torch.cat([it.grad.flatten() for it in parameters if it.grad is not None])
    views = learner.parameters.like(gradients[0]).views
    found = torch.cat([views[name].flatten() for name, _ in module.named_parameters()]).double()
    assert torch.allclose(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


class Varied(Strategy):
    """A method with state of every kind, and random numbers from every generator."""

    def setup(self) -> None:
        self.memories = {"a": Memory(5, "ring"), "b": [Memory(6, "task_balanced"), Reservoir(4)]}
        self.same, self.count, self.teacher = self.memories["a"], 0, None
        self.table, self.note = np.zeros(3), ("text", None, torch.ones(2))

    def loss(self, batch: Any) -> torch.Tensor:
        logits = self.model(batch.x)
        noise = torch.rand(1) + float(np.random.random()) + float(self.rng.random())  # noqa: NPY002
        loss = self.criterion(logits, batch.y) * (1 + 0.01 * noise.sum())
        for memory in (self.memories["a"], *self.memories["b"]):
            if memory:
                old = memory.sample(3)
                loss = loss + self.criterion(self.model(old.x), old.y) + (old.logits - self.predict(old.x)).mean() * 0
            memory.offer(batch, logits=logits)
        if self.teacher is not None:
            loss = loss + (logits - self.teacher(batch.x)).square().mean()
        self.count += 1
        self.table[0] += float(loss.detach())
        return loss

    def direction(self, gradient: torch.Tensor) -> torch.Tensor:
        if not self.memories["a"]:
            return gradient
        old = self.memories["a"].sample(2)
        reference = self.gradient(self.criterion(self.model(old.x), old.y))
        return gradient - 0.1 * reference

    def end_task(self, task: int) -> None:
        self.teacher, self.note = self.frozen(), ("text", task, self.importance(task) + float(self.rng.random()))
        self.memories["b"][0].offer(self.instances(task), logits=self.predict(self.instances(task).x))


@pytest.mark.parametrize(
    ("variant", "settings"),
    [
        (VARIANTS[0], {}),
        (VARIANTS[-1], {"network": "small_for_a_test"}),
        pytest.param(VARIANTS[0], {"network": "small_for_a_test"}, marks=pytest.mark.nightly),
        pytest.param(VARIANTS[-1], {}, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_a_method_with_state_of_every_kind_resumes(
    variant: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, variant)
    with NETWORKS.temporarily("small_for_a_test", small):
        check_strategy(Varied, scenarios=["class_il"], stores="anything", **settings)


def test_shared_state_stays_shared() -> None:
    with STRATEGIES.temporarily("varied", Varied):
        config, frames = tiny_config("class_il", strategy="varied"), tiny_frames("class_il")
        run, resumed = ContinualRun(config, frames), ContinualRun(config, frames)
        run.advance()
        resumed.restore(run.state())
    strategy: Any = resumed.strategy
    assert strategy.same is strategy.memories["a"]
    assert (strategy.count, type(strategy.table), strategy.note[0]) == (run.strategy.count, np.ndarray, "text")  # type: ignore[attr-defined]
    assert torch.equal(strategy.same.index, run.strategy.same.index)  # type: ignore[attr-defined]


RESUMED: dict[str, tuple[Any, Any, Any]] = {
    "deleted": (lambda: 1, lambda self: vars(self).pop("kept", None), lambda self: hasattr(self, "kept")),
    "in Fortran order": (lambda: np.ones((2, 3), order="F"), id, lambda self: self.kept.strides),
    "a parameter": (lambda: torch.nn.Parameter(torch.ones(1)), id, lambda self: str(self.kept)),
    "a gradient": (
        lambda: torch.ones(1, requires_grad=True),
        lambda self: self.kept.sum().backward(),
        lambda self: (self.kept, self.kept.grad),
    ),
    "a view beside its tensor": (
        lambda: [whole := torch.zeros(4), whole[2:]],
        lambda self: self.kept[0].add_(1),
        lambda self: (self.kept[0].add_(1), self.kept[1].tolist())[1],
    ),
    "expanded": (lambda: torch.ones(3, 1).expand(3, 5), id, lambda self: self.kept.stride()),
}
"""An attribute, what a step does with it, and what must be equal in a resumed run."""


@pytest.mark.parametrize("name", RESUMED)
def test_attributes_come_back_as_they_were(name: str, own: Any) -> None:
    make, change, fact = RESUMED[name]

    def loss(self: Any, batch: Any) -> torch.Tensor:
        change(self)
        return self.model(batch.x).mean()

    run = own(loss, setup=lambda self: setattr(self, "kept", make()))
    resumed = own()
    run.advance()
    resumed.restore(saved_and_loaded(run.state()))
    assert fact(resumed.strategy) == fact(run.strategy)


def offered(policy: Any = "ring", **columns: Any) -> Any:
    return lambda self, b: Memory(3, policy).offer(b, **{name: make(b) for name, make in columns.items()})


LOSSES: dict[str, tuple[Any, str]] = {
    "no scalar": (
        lambda self, b: self.losses(self.model(b.x), b.y),
        r"loss\(\) returned a tensor \[\d+\]; expected a s",
    ),
    "nothing": (lambda self, b: None, "returned NoneType; expected a scalar"),
    "no gradient": (lambda self, b: self.criterion(self.predict(b.x), b.y), "a loss that depends on no parameter"),
    "a constant": (lambda self, b: torch.zeros(()), "a loss that depends on no parameter"),
    "frames of another shape": (
        lambda self, b: self.model(b.x[:, :, :9]).mean(),
        r"self.model got a tensor \[\d+, 1, ",
    ),
    "no frames": (lambda self, b: self.model(3).mean(), r"self.model got int; expected float32 frames \[n, 1, 2500\]"),
    "doubles": (lambda self, b: self.model(b.x.double()).mean(), r"self.model got torch.float64"),
    "unlike shapes": (lambda self, b: self.criterion(self.model(b.x), b.y[:1]), r"criterion got logits .* and targets"),
    "an unknown option": (lambda self, b: self.options.my_own, r"self.options.my_own: it lists no such option"),
    "an empty memory": (lambda self, b: Memory(3).sample(2), "memory: sampled while it is empty"),
    "a task before it": (lambda self, b: self.instances(-1), "task -1 has not begun; expected one from 0 to 0"),
    "a later task": (lambda self, b: self.instances(1), "task 1 has not begun; expected one from 0 to 0"),
    "columns of another length": (offered(a=lambda b: b.x[1:]), r"memory: a is a tensor .*; expected a row"),
    "a name of the batch's": (offered(x=lambda b: b.x), r"memory: x=... is a reserved name"),
    "herding without features": (offered("herding"), "policy 'herding' needs features="),
}


@pytest.mark.parametrize("returned", [None, torch.zeros(3), "float64"], ids=str)
def test_directions_that_are_refused(returned: Any, own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "direction", lambda self, it: it.double() if returned == "float64" else returned)
    with pytest.raises(UsageError, match=r"direction\(\) did not return a float32 tensor \[\d+\]"):
        own().advance()


@pytest.mark.parametrize("name", LOSSES)
def test_losses_that_are_refused(name: str, own: Any) -> None:
    loss, sentence = LOSSES[name]
    with pytest.raises(UsageError, match=sentence) as raised:
        own(loss).advance()
    assert "\n" not in str(raised.value)


def test_random_numbers_are_those_of_the_run_s_streams(own: Any) -> None:
    drawn: list[tuple[float, float]] = []
    ended: list[tuple[float, float]] = []

    def loss(self: Any, batch: Any) -> torch.Tensor:
        drawn.append((self.rng.random(), random.random()))
        return self.model(batch.x).mean()

    run = own(loss, end=lambda self, task: ended.append((self.rng.random(), random.random())), batch_size=64)
    run.run()
    seed = run.config.seed
    epochs = [(task, epoch) for task in range(3) for epoch in range(run.config.epochs_per_task)]
    assert [each for each, _ in drawn] == [streams.generator(seed, "loss", task, 2, it).random() for task, it in epochs]
    assert [each for each, _ in ended] == [streams.generator(seed, "loss", task, 1).random() for task in range(3)]
    last = [(task, run.config.epochs_per_task - 1) for task in range(3)]
    for name, found, places in (("global generators", drawn, epochs), ("hooks", ended, last)):
        keys = [streams.key(seed, name, *it).tolist() for it in places]
        assert [each for _, each in found] == [random.Random(seed_of((one, two), 0)).random() for one, two in keys]


def test_a_pass_of_an_earlier_step_is_refused(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []

    def loss(self: Any, batch: Any) -> torch.Tensor:
        kept.append(self.model(batch.x).mean())
        return kept[0] + kept[-1]

    with pytest.raises(UsageError, match=r"earlier step|differentiated twice"):
        own(loss).advance()


STATES: dict[str, tuple[Any, str]] = {
    "an object": (object, "self.kept is object, which a checkpoint cannot hold"),
    "a function": (lambda: [{"a": len}], r"self.kept\[0\]\['a'\] is builtin_function_or_method"),
    "a module": (lambda: torch.nn.Linear(1, 1), "self.kept is Linear"),
    "a memory of another class": (lambda: [OneOf(3)], r"self.kept\[0\] is OneOf \(a subclass of Memory\), which a ch"),
    "a masked array": (lambda: np.ma.zeros(3), "self.kept is MaskedArray"),
    "a view of another type": (
        lambda: [it := torch.zeros(4), it.view(torch.int32)],
        r"self.kept\[1\] shares memory with self.kept\[0\]; keep a clone\(\)",
    ),
    "an array beside its tensor": (lambda: (it := torch.zeros(4), it.numpy()[::-1]), "self.kept.* shares memory with"),
    "a sparse tensor": (lambda: torch.eye(3).to_sparse(), "self.kept is Tensor, which a .*; expected dense tensors"),
    "a list in itself": (lambda: (it := [1], it.append(it))[0], r"self.kept\[1\] contains itself, which a checkpoint"),
    "complex numbers": (lambda: np.complex64(1), "self.kept is complex64"),
}


class OneOf(Memory):
    """A memory from which one instance is drawn."""


def test_memory_that_changes_is_not_kept_but_disjoint_views_are(own: Any) -> None:
    own(setup=lambda self: setattr(self, "kept", list(torch.zeros(3, 4).T)))
    with pytest.raises(UsageError, match=r"self\.kept shares memory with the network's parameters, which c"):
        own(setup=lambda self: setattr(self, "kept", self.parameters.detach().numpy()[:3]))


@pytest.mark.parametrize(
    "held",
    [[1], (Memory(3),), torch.ones(1), type("Slotted", (), {"__slots__": "kept"}).kept],  # type: ignore[attr-defined]
    ids=["a list", "memories", "a tensor", "a slot"],
)
def test_what_lies_in_a_class_must_not_change(held: Any, own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "kept", (0, "text", None), raising=False)
    own().advance()
    with pytest.raises(UsageError, match=r"Own\.kept can change, but lies in the class .*; create it in setup\(\)"):
        own(lambda self, batch: setattr(Own, "kept", 1) or self.model(batch.x).mean()).advance()
    monkeypatch.setattr(Own, "kept", held)
    with pytest.raises(UsageError, match=r"Own\.kept can change"):
        own()


STEPS = 0
TOTALS = {"steps": 0}


def counted_globally() -> None:
    global STEPS
    STEPS += 1


def counted_in_a_dictionary() -> None:
    TOTALS["steps"] += 1


def counted_in_a_closure() -> Any:
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    return count


@pytest.mark.parametrize(
    ("count", "name"),
    [(counted_globally, "STEPS"), (counted_in_a_dictionary, r"TOTALS\['steps'\]"), (counted_in_a_closure(), "calls")],
)
def test_a_count_in_the_code_is_refused(count: Any, name: str, own: Any) -> None:
    def loss(self: Any, batch: Any) -> torch.Tensor:
        count()
        return self.model(batch.x).mean()

    with pytest.raises(UsageError, match=f"^strategy 'own': changes {name} in a closure, global or default, which c"):
        own(loss).advance()


@pytest.mark.parametrize("copied", [lambda self: self.model, lambda self: self.predict, lambda self: self])
def test_a_deep_copy_of_the_model_is_refused_with_frozen(copied: Any, own: Any) -> None:
    def setup(self: Any) -> None:
        self.teacher = copy.deepcopy(copied(self))

    with pytest.raises(UsageError, match=r"^strategy 'own': copy\.deepcopy .*; self\.frozen\(\) returns a copy"):
        own(lambda self, batch: self.model(batch.x).mean(), setup=setup)


def test_a_log_in_the_code_is_not_refused(own: Any) -> None:
    losses = []

    def loss(self: Any, batch: Any) -> torch.Tensor:
        losses.append(len(batch))
        return self.model(batch.x).mean()

    own(loss).advance()
    assert losses


@pytest.mark.parametrize("name", STATES)
def test_state_that_cannot_be_kept_is_refused_before_the_first_epoch(name: str, own: Any) -> None:
    make, sentence = STATES[name]
    with pytest.raises(UsageError, match=f"^strategy 'own': {sentence}"):
        own(setup=lambda self: setattr(self, "kept", make()))


@pytest.mark.parametrize("name", STATES)
def test_state_that_cannot_be_kept_is_refused_after_the_first_step(name: str, own: Any) -> None:
    make, sentence = STATES[name]
    steps = []

    def loss(self: Any, batch: Any) -> torch.Tensor:
        steps.append(len(batch))
        self.kept = make()
        return self.model(batch.x).mean()

    with pytest.raises(UsageError, match=f"^strategy 'own': {sentence}"):
        own(loss, setup=lambda self: None).advance()
    assert len(steps) == 1


def test_a_strategy_without_a_loss_is_refused() -> None:
    with pytest.raises(UsageError, match=r"with a method loss\(batch\), train_epoch or replay"):
        strategy("without_a_loss")(type("Nothing", (Strategy,), {}))


def test_the_form_of_earlier_versions_is_refused_with_the_page() -> None:
    with pytest.raises(UsageError, match=r"lockstep = \.\.\.: a method trains one run.*docs/own_method\.md"):
        strategy("old", lockstep=["my_rate"])
    with pytest.raises(UsageError, match=r"expected clops_sweep\.Strategy, as in docs/own_method\.md"):
        clops_sweep.LockstepStrategy  # noqa: B018
