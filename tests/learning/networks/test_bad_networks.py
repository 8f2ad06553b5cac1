"""Networks that cannot be trained are refused in one sentence before any training."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from clops_sweep.errors import UsageError
from clops_sweep.learning.networks.module_probe import probed

SHAPE, OUTPUTS = (2, 40), 3


class Base(nn.Module):
    """A valid network, which subclasses break."""

    def __init__(self, channels: int = 2, samples: int = 40, outputs: int = OUTPUTS) -> None:
        super().__init__()
        self.body = nn.Linear(channels * samples, 8)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, outputs)

    def hidden(self, frames: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.body(frames.flatten(1))))

    def forward(self, frames: torch.Tensor) -> Any:
        return self.head(self.hidden(frames))


def built(change: Callable[[Base], object]) -> Callable[..., nn.Module]:
    """Make a valid network and break it."""

    def make(channels: int, samples: int, outputs: int) -> nn.Module:
        module = Base(channels, samples, outputs)
        change(module)
        return module

    return make


def with_gain(module: nn.Module) -> nn.Module:
    """Add gains that are zero."""
    module.gain = nn.Parameter(torch.zeros(8))
    return module


def passing(forward: Callable[[Base, torch.Tensor], Any]) -> type[Base]:
    """Return a valid network with another forward function."""
    return type("Spoiled", (Base,), {"forward": forward})


def _bounding(self: Base, frames: torch.Tensor) -> torch.Tensor:
    """Bounded norms of filters as in many implementations of EEGNet."""
    self.body.weight.data = torch.renorm(self.body.weight.data, p=2, dim=0, maxnorm=0.1)
    return self.head(self.hidden(frames))


def _bounding_in_training(self: Base, frames: torch.Tensor) -> torch.Tensor:
    if self.training:
        with torch.no_grad():
            self.body.weight.clamp_(-0.01, 0.01)
    return self.head(self.hidden(frames))


def _bounding_below(self: Base, frames: torch.Tensor) -> torch.Tensor:
    """Gains that begin at their bound, which steps cross."""
    logits = self.head(self.hidden(frames) * self.gain)
    self.gain.data.clamp_(min=0)
    return logits


def _replacing(self: Base, frames: torch.Tensor) -> torch.Tensor:
    """Weights far from their bound: same values in other memory, which no step would reach."""
    self.body.weight.data = torch.renorm(self.body.weight.data, p=2, dim=0, maxnorm=100.0)
    return self.head(self.hidden(frames))


class Raises(nn.Module):
    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("out of order")


class Remembers(nn.Module):
    """Adds a share of its previous input."""

    last: torch.Tensor | float = 0.0

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        result = hidden + 0.1 * self.last
        self.last = hidden.detach().mean()
        return result


class DrawsItsOwn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = np.random.default_rng()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        noise = self.generator.standard_normal(hidden.shape).astype("float32")
        return hidden + torch.from_numpy(noise) if self.training else hidden


class WarmsUp(nn.Module):
    """Changes after some training passes, which it counts in one of several ways."""

    total = 0

    def __init__(self, count: Callable[[Any], Any]) -> None:
        super().__init__()
        self.steps, self.past, self.seen, self.count, self.box = 0, [0], torch.zeros(1), count, SimpleNamespace(steps=0)
        self.ticks = Ticks()

    def get_extra_state(self) -> Any:
        return {"total": type(self).total}

    def set_extra_state(self, state: Any) -> None:
        type(self).total = state["total"]

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * (1.3 if self.training and (self.count(self) or 0) > 20 else 1)


class Ticks:
    """A count in an object of a user."""

    passed = 0

    def __next__(self) -> int:
        self.passed += 1
        return self.passed


def counted(layer: Any) -> int:
    layer.steps += 1
    return int(layer.steps)


def counted_by_all(layer: Any) -> int:
    type(layer).total += 1
    return int(type(layer).total)


COUNTS = {"calls": 0}
FIRST = 0


class KeepsInItsCode(nn.Module):
    """Changes after some training passes, which it counts in one of several places outside its attributes."""

    calls = 0

    def __init__(self, count: Callable[[], int]) -> None:
        super().__init__()
        self.count = count

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * (1.3 if self.training and self.count() > 20 else 1)


def counted_in_the_class() -> int:
    KeepsInItsCode.calls += 1
    return KeepsInItsCode.calls


def counted_in_a_global() -> int:
    global FIRST
    FIRST += 1
    return FIRST


def counted_in_a_dictionary() -> int:
    COUNTS["calls"] += 1
    return COUNTS["calls"]


def counted_by_a_helper() -> int:
    return counted_in_a_dictionary()


def counted_in_a_default(past: list[int] = []) -> int:  # noqa: B006
    past.append(1)
    return len(past)


def counted_in_itself() -> int:
    counted_in_itself.calls = getattr(counted_in_itself, "calls", 0) + 1  # type: ignore[attr-defined]
    return int(counted_in_itself.calls)  # type: ignore[attr-defined]


def counted_in_a_closure() -> Callable[[], int]:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return steps

    return count


class CountsEvaluations(nn.Module):
    """Counts passes in evaluation mode, which change training later."""

    past = 0

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if not self.training:
            self.past += 1
        return hidden * (1.3 if self.training and self.past > 50 else 1)


class CountsCalls(nn.Module):
    calls = 0

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return hidden * (1 + self.calls) if self.training else hidden


class OwnStatistics(nn.Module):
    """Subtracts the mean of the latest training batch in evaluation; it is no buffer."""

    mean: torch.Tensor | float = 0.0

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean = hidden.detach().mean()
            return hidden - hidden.mean()
        return hidden - self.mean


class KeepsItsFirstWeights(Base):
    """Scales by the norm of its weights at its first pass, as an implementation of spectral norm may."""

    norm_at_first: torch.Tensor | None = None

    def forward(self, frames: torch.Tensor) -> Any:
        if self.norm_at_first is None:
            self.norm_at_first = self.body.weight.detach().norm()
        return super().forward(frames) / self.norm_at_first


class FiltersOfTheLastStep(Base):
    """Computes a filter from its weights in training, and uses the last one in evaluation."""

    def __init__(self, *arguments: int) -> None:
        super().__init__(*arguments)
        self.filter = self.body.weight.detach().mean()

    def forward(self, frames: torch.Tensor) -> Any:
        if self.training:
            self.filter = self.body.weight.detach().mean()
        return super().forward(frames) + self.filter


class AlwaysDrops(nn.Module):
    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.dropout(hidden, 0.5)


class CountsInEvaluation(nn.Module):
    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        self.seen += len(hidden)
        return hidden


class OverTheBatch(nn.Module):
    """An LSTM that uses the batch axis as time."""

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(samples, 4), nn.Linear(4, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        return self.head(self.lstm(frames)[0][:, -1])


class Logarithm(nn.Module):
    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden.log()


class Replaces(Base):
    def forward(self, frames: torch.Tensor) -> Any:
        if self.training:
            self.body.weight = nn.Parameter(self.body.weight.detach() * 0.9)
        return super().forward(frames)


class Unregistered(Base):
    def __init__(self, *arguments: int) -> None:
        super().__init__(*arguments)
        self.layers = [nn.Linear(8, 8)]

    def forward(self, frames: torch.Tensor) -> Any:
        return self.head(self.layers[0](self.hidden(frames)))


ONE = Base()
"""An existing module."""


def behind(layer: Callable[[], nn.Module]) -> Callable[..., nn.Module]:
    """Return a valid network with a layer after its body."""

    def make(channels: int, samples: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, 8), layer(), nn.Linear(8, outputs))

    return make


BAD: dict[str, tuple[Any, str]] = {
    "raises when made": (lambda c, s, o: 1 / 0, r"raises when made for channels = 2, .* \(ZeroDivisionError: div"),
    "nothing": (lambda c, s, o: None, r"returned NoneType; expected a torch\.nn\.Module"),
    "a class": (lambda c, s, o: Base, r"returned type; expected a torch\.nn\.Module"),
    "the same one": (lambda c, s, o: ONE, "returns the same module or layer twice; make a new one in each call"),
    "a shared layer": (lambda c, s, o: nn.Sequential(nn.Flatten(), nn.Linear(80, 8), ONE.head), "same module or layer"),
    "no parameter": (lambda c, s, o: nn.Flatten(), "has no parameter that asks for a gradient"),
    "all frozen": (built(lambda it: it.requires_grad_(False)), "has no parameter that asks for a gradient"),
    "float64": (built(lambda it: it.double()), r"parameter 'body\.weight' is float64; expected float32"),
    "half": (built(lambda it: it.head.half()), r"parameter 'head\.weight' is float16; expected float32"),
    "elsewhere": (
        built(lambda it: it.head.to("meta")),
        r"parameter 'head\.weight' is created on meta; create it on the CPU",
    ),
    "infinite": (built(lambda it: it.head.bias.data.fill_(np.inf)), r"'head\.bias' is not finite when it is created"),
    "own initial weights": (
        built(lambda it: it.head.bias.data.fill_(np.random.default_rng().random())),
        r"'head\.bias' differs when the network is created again from the same seed; draw it from the global",
    ),
    "an expanded buffer": (
        built(lambda it: it.register_buffer("wide", torch.ones(1).expand(8))),
        r"buffer 'wide' is sparse or expanded; register a dense copy",
    ),
    "a sparse buffer": (
        built(lambda it: it.register_buffer("few", torch.eye(8).to_sparse())),
        "buffer 'few' is sparse or expanded",
    ),
    "raises": (
        behind(Raises),
        r"raises on frames \[3, 2, 40\], in layer '2' \(Raises\) \(RuntimeError: out of",
    ),
    "other samples": (
        lambda c, s, o: nn.Sequential(nn.Flatten(), nn.Linear(2500, o)),
        r"raises on frames \[3, 2, 40\], in layer '1' \(Linear\) \(RuntimeError: mat1 and mat2 shapes cannot be",
    ),
    "a tuple": (
        passing(lambda it, x: (Base.forward(it, x), x)),
        r"returned tuple for 3 instances; expected a dense float32 tensor \[3, 3\]",
    ),
    "features": (
        passing(lambda it, x: it.hidden(x)),
        r"returned logits \[3, 8\] of .* for 3 instances; expected .* \[3, 3\]",
    ),
    "squeezed": (passing(lambda it, x: Base.forward(it, x).squeeze()), r"returned logits \[3\] of .* for 1 instances"),
    "float64 logits": (passing(lambda it, x: Base.forward(it, x).double()), r"torch\.float64 for 3"),
    "classes": (passing(lambda it, x: Base.forward(it, x).round().long()), r"torch\.int64 for 3"),
    "not finite": (behind(Logarithm), "logits that are not finite for frames of noise"),
    "bounds weights": (passing(_bounding), "changes or replaces parameter 'body.weight'.*register_parametrization"),
    "bounds weights in training": (passing(_bounding_in_training), "changes or replaces parameter 'body.weight'"),
    "bounds gains that a step moves": (
        lambda c, s, o: with_gain(passing(_bounding_below)(c, s, o)),
        "changes or replaces parameter 'gain'",
    ),
    "gives weights other memory": (passing(_replacing), "changes or replaces parameter 'body.weight'"),
    "counts in evaluation": (behind(CountsInEvaluation), r"changes '2\.seen' in evaluation mode"),
    "always drops": (behind(AlwaysDrops), "other logits in evaluation mode when .*; draw random numbers in training"),
    "remembers": (behind(Remembers), "other logits in evaluation mode when it is called again"),
    "counts calls": (behind(CountsCalls), "other logits in training when it is called again"),
    "statistics of its own": (
        behind(OwnStatistics),
        "other logits in evaluation mode after a training pass with the same buffers; keep statistics in buffers",
    ),
    "a count": (behind(lambda: WarmsUp(counted)), r"changes '2\.steps' from one training pass to the next.*register_b"),
    "a list": (
        behind(lambda: WarmsUp(lambda it: it.past.append(1))),
        r"changes '2\.past' from",
    ),
    "a tensor": (behind(lambda: WarmsUp(lambda it: it.seen.add_(1).item())), r"changes '2\.seen' from"),
    "extra state": (behind(lambda: WarmsUp(counted_by_all)), r"changes '2\._extra_state' from"),
    "a namespace": (behind(lambda: WarmsUp(lambda it: counted(it.box))), r"changes '2\.box' from"),
    "an object's count": (behind(lambda: WarmsUp(lambda it: next(it.ticks))), r"changes '2\.ticks' from"),
    "a count in the class": (
        behind(lambda: KeepsInItsCode(counted_in_the_class)),
        "changes 'KeepsInItsCode.calls' from",
    ),
    "a global": (behind(lambda: KeepsInItsCode(counted_in_a_global)), "changes 'FIRST' from one training pass"),
    "a dictionary": (behind(lambda: KeepsInItsCode(counted_in_a_dictionary)), "changes 'COUNTS' from"),
    "a helper's": (behind(lambda: KeepsInItsCode(counted_by_a_helper)), "changes 'COUNTS' from"),
    "a default": (behind(lambda: KeepsInItsCode(counted_in_a_default)), "changes 'default 0 of counted_in_a_default'"),
    "a function's own": (behind(lambda: KeepsInItsCode(counted_in_itself)), r"changes '2\.count' from"),
    "a closure": (behind(lambda: KeepsInItsCode(counted_in_a_closure())), "changes 'steps' from one training pass"),
    "counts evaluations": (
        behind(CountsEvaluations),
        r"changes '2\.past' from one pass in evaluation mode to the next",
    ),
    "weights tied by their data": (
        built(lambda it: setattr(it.head.bias, "data", it.body.bias.data[:3])),
        r"'body\.bias' shares memory with parameter 'head\.bias', and training would move|'head\.bias' shares memory",
    ),
    "a buffer that is a weight": (
        built(lambda it: it.register_buffer("first", it.body.weight.data)),
        r"'first' shares memory with parameter 'body\.weight'.*; assign the parameter itself",
    ),
    "an attribute that is a weight": (
        built(lambda it: setattr(it, "filters", it.body.weight.detach().t())),
        r"'filters' shares memory with parameter 'body\.weight'",
    ),
    "keeps its first weights": (
        KeepsItsFirstWeights,
        "other logits when a new module takes its parameters and buf",
    ),
    "filters of the last step": (FiltersOfTheLastStep, "other logits when a new module takes its parameters and buf"),
    "draws its own": (behind(DrawsItsOwn), "other logits in training when it is called again"),
    "over the batch": (OverTheBatch, "gives an instance other logits in evaluation mode when others are in its batch"),
    "batch statistics alone": (
        behind(lambda: nn.BatchNorm1d(8, track_running_stats=False)),
        "raises on frames .*Expected more than 1 value per channel|other logits in evaluation mode when others are",
    ),
    "replaces": (Replaces, "other logits in training when it is called again"),
    "detached": (passing(lambda it, x: Base.forward(it, x).detach()), "its logits depend on none of its parameters"),
    "softmax": (
        lambda *shape: nn.Sequential(Base(*shape), nn.Softmax(dim=1)),
        "returns probabilities, rows that sum to 1, instead of logits; leave out the final softmax",
    ),
    "softmax as a function": (
        passing(lambda it, x: F.softmax(Base.forward(it, x), dim=-1)),
        "returns probabilities, rows that sum to 1, instead of logits; leave out the final softmax",
    ),
    "unregistered": (Unregistered, r"trains a tensor \[8(, 8)?\] that is no parameter; make it an nn\.Parameter"),
    "idle": (
        built(lambda it: it.add_module("spare", nn.Linear(2, 2))),
        r"parameter 'spare\.weight' gets no gradient in training; leave it out, or set requires_grad = False",
    ),
}


@pytest.mark.parametrize("name", list(BAD))
def test_what_cannot_be_trained_is_refused_with_its_layer(name: str) -> None:
    make, sentence = BAD[name]
    with pytest.raises(UsageError, match=sentence) as refused:
        probed("mine", make, SHAPE, OUTPUTS)
    assert re.match(r"network 'mine': [^\n]*$", str(refused.value))
    assert len(str(refused.value)) < 400


def test_a_good_one_is_not() -> None:
    found = probed("mine", Base, SHAPE, OUTPUTS)
    assert (found.statistics, found.smallest_batch) == (frozenset({"norm"}), 2)
    assert probed("lazy", behind(lambda: nn.LazyBatchNorm1d(affine=False)), SHAPE, OUTPUTS).statistics == {"2"}


class FewLogits(nn.Module):
    """Logits that are small and positive at first, or all zero."""

    def __init__(self, channels: int, samples: int, outputs: int, first: float) -> None:
        super().__init__()
        self.head = nn.Linear(channels * samples, outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.constant_(self.head.bias, first)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.head(frames.flatten(1))


@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize(
    ("last", "doubt"),
    [
        (torch.sigmoid, "returns values from 0 to 1 alone; losses take logits: leave out a final sigmoid"),
        (lambda z: F.hardsigmoid(z), "returns values from 0 to 1 alone"),
        (lambda z: F.log_softmax(torch.cat([z, -z], 1), 1)[:, : z.shape[1]], ""),  # of twice as many classes
        (lambda z: z, ""),
        (torch.relu, ""),
        (torch.tanh, ""),
    ],
)
def test_outputs_that_may_be_no_logits_are_doubted(outputs: int, last: Callable[..., Any], doubt: str) -> None:
    make = passing(lambda it, x: last(Base.forward(it, x)))
    found = probed(f"ending {outputs}", make, SHAPE, outputs).doubt
    assert found.startswith(doubt), found
    assert bool(found) == bool(doubt)


def test_logarithms_of_probabilities_are_doubted() -> None:
    make = passing(lambda it, x: F.log_softmax(Base.forward(it, x), dim=1))
    assert "leave out the final log-softmax" in probed("log", make, SHAPE, OUTPUTS).doubt


@pytest.mark.parametrize(("outputs", "first"), [(1, 0.0), (1, 1.0), (2, 0.5), (3, 1 / 3), (4, 0.1)])
def test_logits_that_look_like_probabilities_at_first_are_not_doubted(outputs: int, first: float) -> None:
    assert probed(f"{first}", lambda *shape: FewLogits(*shape, first), SHAPE, outputs).doubt == ""


def test_trying_leaves_the_process_as_it_was() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]  # noqa: NPY002
    probed("another", behind(lambda: nn.Dropout(0.5)), SHAPE, OUTPUTS)
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before  # type: ignore[index]  # noqa: NPY002
