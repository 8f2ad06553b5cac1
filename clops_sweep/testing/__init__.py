"""Contract suites for plug-ins. The tests of a custom plug-in import a suite and call it on the plug-in.

Example::

    from clops_sweep.testing import check_acquisition_function

    def test_contract():
        check_acquisition_function(least_confident)

Each suite runs in seconds on tiny generated frames, with all three kinds of output (a scenario has its own kind). It
raises `ContractViolation` with a sentence that says what is wrong. It needs no test framework and no data.
"""

from __future__ import annotations

from clops_sweep.testing.acquisition_contract import check_acquisition_function
from clops_sweep.testing.augmentation_contract import check_augmentation
from clops_sweep.testing.frames import SCENARIO_KINDS, tiny_config, tiny_frames
from clops_sweep.testing.network_contract import check_network
from clops_sweep.testing.observer_contract import check_observer
from clops_sweep.testing.scenario_contract import check_scenario
from clops_sweep.testing.shapes import of_shape
from clops_sweep.testing.storage_contract import check_storage_function
from clops_sweep.testing.strategy_contract import check_strategy
from clops_sweep.testing.watch import ContractViolation

__all__ = [
    "SCENARIO_KINDS",
    "ContractViolation",
    "check_acquisition_function",
    "check_augmentation",
    "check_network",
    "check_observer",
    "check_scenario",
    "check_storage_function",
    "check_strategy",
    "of_shape",
    "tiny_config",
    "tiny_frames",
]
