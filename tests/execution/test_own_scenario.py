"""A scenario of a search-space file on workers, groups of classes, and predictions that are asked for afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, roc_auc_score

from clops_sweep import load_model, open_frames, read
from tests.helpers.launching import Sweep

pytestmark = pytest.mark.nightly

Launch = Callable[..., Sweep]
Command = Callable[..., "subprocess.CompletedProcess[str]"]

SPACE = """
import numpy as np
from clops_sweep import RunConfig, ScenarioTasks, SearchSpace, TaskInstances, scenario

@scenario("by_decade")
def by_decade(frames):
    later = frames.times >= np.datetime64("2020-01-01")
    targets = np.eye(len(frames.classes))[frames.labels]
    lead = frames.leads == frames.lead_names.index("II")
    decades = {"the teens": ~later, "the twenties": later}
    return ScenarioTasks("softmax", [TaskInstances(name, lead & chosen, targets) for name, chosen in decades.items()])

BASE = RunConfig(strategy="finetune", epochs_per_task=1)
SPACE = [
    SearchSpace("own", BASE.replace(scenario="by_decade"), seeds=[0]),
    SearchSpace("union", BASE.replace(scenario="class_il_union"), {"task_classes": [None, [[0, 1, 2], [3, 4]]]}, [0]),
]
"""


def test_predictions_and_models_are_kept_afterwards_and_give_what_is_stored(
    attach: Launch, clops_sweep: Command, tmp_path: Path, prepared_root: Path
) -> None:
    (tmp_path / "space.py").write_text(SPACE)
    first = attach("space.py", "--where", "scenario == 'by_decade'", "--no-report")
    assert first.wait() == 0, first.errors
    before = read(tmp_path / "results", "r_matrix")
    assert before["task"].unique().tolist() == ["the teens", "the twenties"]
    assert len(read(tmp_path / "results", "predictions")) == 0

    again = attach("space.py", "--keep", "predictions", "--keep", "models", "--no-report")
    assert again.wait() == 0, again.errors
    assert "1 run is finished without what --keep asks for; it is computed again" in again.output
    assert "models: 3 files" in again.output
    assert "3 runs asked for, 3 finished, 0 pending, 0 failed" in again.output
    r = read(tmp_path / "results", "r_matrix")
    assert r[r["run_id"].isin(before["run_id"])].reset_index(drop=True).equals(before)

    runs = read(tmp_path / "results", "runs").set_index("run_id")
    assert set(runs["task_classes"].dropna()) == {"[[0, 1, 2], [3, 4]]"}
    kept = read(tmp_path / "results", "predictions")
    assert set(kept["run_id"]) == set(runs.index)
    found = r[r["split"] == "test"].set_index(["run_id", "trained_on", "evaluated_on"])
    for key, rows in kept.groupby(["run_id", "trained_on", "evaluated_on"]):
        truth, p = (rows.filter(regex=f"^{it}_").dropna(axis=1).to_numpy() for it in ("target", "probability"))
        present = np.flatnonzero(np.ptp(truth, axis=0))
        auc = np.mean([roc_auc_score(truth[:, c], p[:, c]) for c in present])
        assert abs(found.loc[key, "auc"] - auc) < 1e-6
        assert abs(found.loc[key, "accuracy"] - accuracy_score(truth.argmax(1), p.argmax(1))) < 1e-12

    frames = open_frames("synthetic", prepared_root=prepared_root)
    for run_id, rows in kept[kept["evaluated_on"] == kept["trained_on"].max()].groupby("run_id"):
        rows = rows[rows["trained_on"] == rows["trained_on"].max()]
        model = load_model(tmp_path / "results", str(run_id))
        with torch.no_grad():
            p = model(model.normalized(frames.signal(rows["instance"].to_numpy())[:, None])).numpy()
        np.testing.assert_allclose(p, rows.filter(regex="^probability_").dropna(axis=1).to_numpy(), rtol=0, atol=1e-5)

    done = clops_sweep("rerun", before["run_id"][0], "--verify", "--plugins", "space.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every number equals the stored one, bit for bit" in done.stdout
