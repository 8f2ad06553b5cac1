"""Contract suite of augmentations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import AUGMENTATIONS
from clops_sweep.learning.augmentation.augmenter import Augmenter
from clops_sweep.learning.networks.module_probe import same_bits
from clops_sweep.testing.frames import tiny_config, tiny_frames
from clops_sweep.testing.strategy_contract import check_named_strategy
from clops_sweep.testing.watch import ContractViolation, global_randomness, require

_SHAPES = ((7, 3, 400), (1, 3, 400), (5, 2, 50))


def check_augmentation(function: Callable[..., Any], *, whole_runs: bool = True, **options: Any) -> None:
    """Check an augmentation against its contract.

    For frames of several shapes, the result has the same shape and type, is finite, and depends only on the frames and
    the given generator. The given frames are not modified. Then complete runs of CLOPS and GEM on single-channel frames
    must pass `check_strategy`'s suite.

    Args:
        function: from frames, float32 [n, channels, samples], and a `numpy.random.Generator` to augmented frames.
        whole_runs: False skips the runs, for a function that needs several channels.
        options: values of the function's options.

    Raises:
        ContractViolation: the function breaks the contract; the message says how.
    """
    with AUGMENTATIONS.temporarily("augmentation_under_test", function, AUGMENTATIONS.declaration_of(function)):
        try:
            for number, shape in enumerate(_SHAPES):
                frames = torch.from_numpy(np.random.default_rng(number).normal(size=shape).astype(np.float32))
                before, found = frames.clone(), []
                for _ in range(2):
                    with global_randomness(number, "the augmentation"):
                        found.append(Augmenter("augmentation_under_test", 3, options)(frames))
                    require(same_bits(frames, before), "the augmentation modifies the given frames")
                require(bool(found[0].isfinite().all()), f"frames {list(shape)}: a sample is not finite")
                require(same_bits(*found), f"frames {list(shape)}: equal generators give different frames")
            for strategy in ("clops", "gem") if whole_runs else ():
                given = {"augment": "augmentation_under_test", "strategy": strategy}
                check_named_strategy(tiny_config("class_il", **given, **options), tiny_frames("class_il"))
        except UsageError as error:
            raise ContractViolation(str(error)) from error
