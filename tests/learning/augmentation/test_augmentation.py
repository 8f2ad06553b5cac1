"""Augmentations: their formulas, the contract suite, and whole runs on native kernels and on modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import cumulative_trapezoid
from scipy.interpolate import CubicSpline

from clops_sweep import ContinualRun, IntOption, augmentation, native
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import AUGMENTATIONS
from clops_sweep.learning.augmentation.built_in import jitter, lead_dropout, scaling, time_warp
from clops_sweep.testing import ContractViolation, check_augmentation, tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference
from tests.helpers.at_night import mostly_at_night
from tests.helpers.documentation import examples
from tests.learning.kernels import KERNELS

FRAMES = torch.from_numpy(np.random.default_rng(0).normal(2, 3, (4000, 2, 50)).astype(np.float32))


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_jitter_is_noise_in_proportion_to_the_channel() -> None:
    apart = jitter(FRAMES, rng(), jitter_std=0.1) - FRAMES
    relative = (apart / torch.from_numpy(FRAMES.numpy().std(2, keepdims=True))).double()
    assert abs(float(relative.mean())) < 4 * 0.1 / np.sqrt(relative.numel())
    assert float(relative.std()) == pytest.approx(0.1, rel=0.02)
    assert abs(float((relative[:, :, 1:] * relative[:, :, :-1]).mean())) < 1e-4  # samples are independent


def test_scaling_has_one_factor_a_channel() -> None:
    factors = (scaling(FRAMES, rng(), scaling_std=0.2) / FRAMES).double()
    assert torch.allclose(factors, factors[:, :, :1].expand_as(factors), rtol=1e-5)
    assert float(factors[:, :, 0].mean()) == pytest.approx(1, abs=4 * 0.2 / np.sqrt(8000))
    assert float(factors[:, :, 0].std()) == pytest.approx(0.2, rel=0.03)
    assert not torch.allclose(factors[:, 0, 0], factors[:, 1, 0])


@pytest.mark.parametrize("knots", [1, 4])
def test_time_warp_is_monotone_keeps_both_ends_and_moves_channels_alike(knots: int) -> None:
    ramp = torch.arange(50.0).expand(200, 2, 50).clone()  # the value of a sample is its time
    tau = time_warp(ramp, rng(), time_warp_std=0.2, time_warp_knots=knots)
    assert torch.equal(tau[:, 0], tau[:, 1])
    assert torch.allclose(tau[:, :, [0, -1]], ramp[:, :, [0, -1]], atol=1e-4)
    assert (tau.diff(dim=2) > 0).all()
    slopes = CubicSpline(np.linspace(0, 49, knots + 2), rng().normal(1, 0.2, (knots + 2, 200)))(np.arange(50))
    path = cumulative_trapezoid(slopes.clip(0.1), axis=0, initial=0)
    np.testing.assert_allclose(tau[:, 0].numpy(), (49 * path / path[-1]).T, atol=1e-3)
    found = time_warp(FRAMES[:200], rng(), time_warp_std=0.2, time_warp_knots=knots)
    for frame, warped, times in zip(FRAMES[:200].numpy(), found.numpy(), tau[:, 0].numpy(), strict=True):
        expected = np.stack([np.interp(times, np.arange(50), channel) for channel in frame])
        np.testing.assert_allclose(warped, expected, atol=1e-3)


def test_lead_dropout_leaves_a_channel() -> None:
    found = lead_dropout(FRAMES, rng(), lead_dropout_probability=0.5)
    kept = (found != 0).all(2)
    assert torch.equal(found, FRAMES * kept[:, :, None])
    assert (kept.sum(1) >= 1).all()
    assert float((kept.sum(1) == 2).float().mean()) == pytest.approx(0.5, abs=0.04)  # of the other channel
    with pytest.raises(UsageError, match="frames have one channel; expected several"):
        lead_dropout(FRAMES[:, :1], rng(), lead_dropout_probability=0.5)


BUILT_IN = [name for name in AUGMENTATIONS if name not in AUGMENTATIONS.added]


@pytest.mark.parametrize("name", mostly_at_night(BUILT_IN, ("time_warp", "lead_dropout").__contains__))
def test_built_in_augmentations(name: str) -> None:
    options = {key: it.default for key, it in AUGMENTATIONS.options(name).items()}
    check_augmentation(AUGMENTATIONS[name], whole_runs=name != "lead_dropout", **options)


BROKEN: dict[str, tuple[Any, str]] = {
    "in place": (lambda frames, rng: frames.mul_(2), "modifies the given frames"),
    "by chance": (lambda frames, rng: frames + torch.rand(1), "global generator"),
    "of another shape": (lambda frames, rng: frames[:, :, 1:], r"expected frames \[7, 3, 400\] of torch.float32"),
    "of another type": (lambda frames, rng: frames.double(), r"of torch.float64; expected"),
    "not finite": (lambda frames, rng: frames / 0, "not finite"),
    "no frames": (lambda frames, rng: None, "returned NoneType; expected frames"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_augmentations_are_found_out(name: str) -> None:
    function, message = BROKEN[name]
    with pytest.raises(ContractViolation, match=message):
        check_augmentation(function)


@pytest.fixture
def shift() -> Iterator[Any]:
    """Return a custom augmentation."""

    @augmentation("shift", options={"most_shift": IntOption(20, ge=0)})
    def shift(frames: torch.Tensor, rng: np.random.Generator, *, most_shift: int) -> torch.Tensor:
        return frames.roll(int(rng.integers(-most_shift, most_shift + 1)), dims=2)

    yield shift
    AUGMENTATIONS.forget("shift")


def _run(strategy: str, **settings: Any) -> Any:
    return ContinualRun(tiny_config("class_il", strategy=strategy, **settings), tiny_frames("class_il")).run()


@pytest.mark.parametrize("variant", [*KERNELS, "off"])
@pytest.mark.parametrize(
    "strategy",
    mostly_at_night(["clops", "finetune", "gem", "mir", "ewc", "lwf", "derpp"], ("gem", "derpp").__contains__),
)
@pytest.mark.usefixtures("shift")
def test_an_augmentation_that_changes_nothing_changes_no_number(
    strategy: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps on augmented copies of frames use another code path than steps on the data set's frames."""
    monkeypatch.setenv(native.ENVIRONMENT, variant)
    plain, same, other = (
        _run(strategy), _run(strategy, augment="shift", most_shift=0), _run(strategy, augment="jitter")
    )  # fmt: skip
    assert result_difference(plain, same, ignore=("run_id", "augment", "most_shift", "plugins")) is None
    assert np.abs(plain.curves["loss"] - other.curves["loss"]).max() > 1e-4


def test_the_page_runs() -> None:
    names: dict[str, Any] = {}
    exec("\n".join(examples("training")), names)
    try:
        requests = list(names["SPACE"].requests())
        assert {(it.config.augment, it.config.get("jitter_std")) for it in requests} == {(None, None), ("jitter", 0.1)}
        for config in (request.config for request in requests):
            assert ContinualRun(config, tiny_frames(config.scenario)).tasks_trained == 0
        check_augmentation(names["shift"], whole_runs=False, most_shift=5)
    finally:
        AUGMENTATIONS.forget("shift")
