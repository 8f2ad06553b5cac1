"""Commands about single runs, on stores in which not everything is as it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import data_hash, open_frames
from clops_sweep.store.run_store import RunStore
from tests.cli.documented import documented
from tests.helpers.stores import record_failure, record_result


@pytest.fixture
def ask(tmp_path: Path, prepared_root: Path) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        return CliRunner(env={"CLOPS_PREPARED_ROOT": str(prepared_root)}).invoke(
            command, [*arguments, "--results", str(tmp_path)], standalone_mode=False
        )

    return invoke


def test_a_failed_run_can_be_repeated(ask: Callable[..., Result], tmp_path: Path, prepared_root: Path) -> None:
    diverging = RunConfig(epochs_per_task=1, learning_rate=1e30, strategy="finetune")
    said = "Diverged: the network has diverged in epoch 1 of task 1: a parameter is not finite; learning_rate is 1e+30"
    content = data_hash(diverging.dataset, prepared_root=prepared_root)
    run_id = diverging.run_id(content)
    record_failure(RunStore(tmp_path), {run_id: diverging}, f"Traceback ...\n{said}", lambda _: content, {})
    plain = ask("rerun", run_id)
    assert (plain.exit_code, plain.output) == (1, f"the run fails: {said}\n")
    alike = ask("rerun", run_id, "--verify")
    assert (alike.exit_code, alike.output) == (0, f"{plain.output}the stored run failed in the same way\n")
    record_failure(RunStore(tmp_path), {run_id: diverging}, "OSError: no space left", lambda _: content, {})
    other = ask("rerun", run_id, "--verify")
    assert (other.exit_code, other.output) == (1, f"{plain.output}the stored run did not fail in that way\n")
    printed = json.loads(ask("rerun", run_id, "--verify", "--json").stdout)
    assert set(printed) == documented("rerun")
    assert (printed["error"], printed["equal"]) == (said, False)


def test_numbers_of_another_device_are_compared_to_a_tolerance(
    ask: Callable[..., Result], tmp_path: Path, prepared_root: Path
) -> None:
    config = RunConfig(epochs_per_task=1, strategy="finetune")
    result = ContinualRun(config, open_frames("synthetic", prepared_root=prepared_root)).run()
    run_id = str(result.columns["runs"]["run_id"][0])
    result.columns["runs"]["auc"][0] += 1e-4
    result.columns["curves"]["loss"] *= 1.1
    record_result(RunStore(tmp_path), {run_id: config}, result, lambda _: "generated0001", {"device": "cuda"})
    exact = ask("rerun", run_id, "--verify", "--device", "cpu")
    assert exact.exit_code == 1
    lines = exact.output.splitlines()
    auc = result.runs["auc"].item()
    assert f"runs.auc: differs: {auc - 1e-4:.9g} here, {auc:.9g} stored" in lines
    (loss,) = (line for line in lines if line.startswith("curves.loss: differs in "))
    row = result.curves.sort_values(["epoch", "task"]).iloc[0]
    where = f"; first at epoch {row['epoch']}, task {row['task']}: "
    rows, most = len(result.curves), float((result.curves["loss"] * (1 - 1 / 1.1)).max())
    assert loss.startswith(f"curves.loss: differs in {rows} of {rows} rows, by {most:.3g} at most{where}")
    assert loss.endswith(f" here, {row['loss']:.9g} stored")
    assert exact.output.endswith("\nnumbers computed on a GPU are equal only up to rounding: see --tolerance\n")
    close = ask("rerun", run_id, "--verify", "--device", "cpu", "--tolerance", "0.001")
    assert (close.exit_code, close.output.splitlines()[-1]) == (0, "metrics and R equal the stored ones to 0.001")
    far = ask("rerun", run_id, "--verify", "--device", "cpu", "--tolerance", "0.00001")
    assert (far.exit_code, far.output.count("differs")) == (1, 1)
