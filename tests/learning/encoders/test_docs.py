"""The examples of docs/encoders.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from clops_sweep import RunConfig
from clops_sweep.experiment.spaces.selection import all_requests
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.learning.encoders.encoders import Encoders
from clops_sweep.testing import tiny_frames
from tests.helpers.documentation import examples
from tests.learning.encoders.conftest import forgotten

DECLARED, ANOTHER = examples("encoders")


def test_the_example_encodes_frames(tmp_path: Path) -> None:
    space = tmp_path / "heads.py"
    space.write_text(DECLARED)
    try:
        assert len(all_requests(load_spaces(space))) == 12
        names: dict[str, object] = {}
        exec(DECLARED, names)
        module = names["Pretrained"]()  # type: ignore[operator]
        torch.save(module.state_dict(), tmp_path / "my_encoder.pth")
        frames = replace(tiny_frames("class_il"), frame_seconds=5.0)
        computing = Encoders(lambda run_id: b"", tmp_path).compute("my_encoder", frames)
        assert np.concatenate(list(computing.batches)).shape == (len(frames), 512)
    finally:
        forgotten()


def test_a_config_is_an_encoder(tmp_path: Path) -> None:
    (tmp_path / "continued.py").write_text(ANOTHER)
    requests = all_requests(load_spaces(tmp_path / "continued.py"))
    assert {request.config.encoder for request in requests} == {RunConfig(dataset="mitbih", strategy="multitask")}
    assert len(requests) == 9
