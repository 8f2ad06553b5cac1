"""`clops-sweep new FILE --continue RUN_ID`: the file runs after the name of the new table is filled in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from clops_sweep import ContinualRun, encode, read
from clops_sweep.analysis.dashboard.update_reports import commands_for
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.provenance import plugins_of
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.store.run_store import RunStore
from tests.conftest import Command
from tests.data.declared_files import forget, write_wfdb
from tests.helpers.stores import record_result

HEADER = "record,rhythm,patient,ward,sex,age"


def _write(folder: Path, table: str, wards: Sequence[str], first: int) -> None:
    """Write one-lead records of ten people in each ward, two of each, and their table; ids have leading zeros."""
    random = np.random.default_rng(first)
    lines = [HEADER]
    for person in range(first, first + 10 * len(wards)):
        for number, rhythm in enumerate(("AF", "sinus rhythm")):
            name = f"p{person:02}_{number}"
            write_wfdb(folder / "hospital", name, random.integers(-999, 999, (1, 500)), 50)
            lines.append(f"{name},{rhythm},{person:03},{wards[person % len(wards)]},{'fm'[person % 2]},{40 + person}")
    (folder / "hospital" / table).write_text("\n".join(lines))


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch, in_process: Command, tmp_path: Path) -> Iterator[Command]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)
    forget("wards", "wards_2027", "wards_2028")
    yield partial(in_process, "new")
    forget("wards", "wards_2027", "wards_2028")


@pytest.fixture
def in_use(new: Command, tmp_path: Path) -> str:
    """The id of a run of the template on three wards, with its model and predictions; the records of D come later."""
    _write(tmp_path, "records.csv", "ABC", 0)
    assert new("wards.py", "--template", "wards").returncode == 0
    (space,) = load_spaces(tmp_path / "wards.py")
    prepare("wards", prepared_root=tmp_path / "prepared", data_root=None)
    return _computed(tmp_path, space.base.replace(strategy="er", epochs_per_task=1, split_seed=1, memory_fraction=0.5))


def _computed(folder: Path, config: RunConfig, *keep: str) -> str:
    if config.start_from is None:
        frames = open_frames(config.dataset, prepared_root=folder / "prepared", **config.data_key.view)
    else:
        frames = encode(config, folder / "results", prepared_root=folder / "prepared")
    keep = keep or ("predictions", "models")
    models = "last" if "models" in keep else None
    result = ContinualRun(config, frames, keep_predictions="predictions" in keep, keep_models=models).run()
    store = RunStore(folder / "results", keep=keep)
    store.open_for_writing()
    run_id = config.run_id(frames.data_hash)
    facts = {"device": "cpu", "plugins": plugins_of(config)}
    record_result(store, {run_id: config}, result, lambda _: frames.data_hash, facts)
    return run_id


def test_the_file_runs_with_the_settings_of_the_run_once_the_table_is_filled_in(
    new: Command, in_use: str, tmp_path: Path
) -> None:
    done = new("wards_2027.py", "--continue", in_use[:8])
    assert (done.returncode, done.stderr) == (0, "")
    assert "name of the table into the line NEW = ..., then run it with: clops-sweep wards_2027.py" in done.stdout
    file = tmp_path / "wards_2027.py"
    text = file.read_text()
    assert "--criteria wards_2027_criteria.toml --plugins" in text
    assert "wards_2027.py and wards_2027_criteria.toml, the acceptance criteria of the run, are written" in done.stdout
    assert (tmp_path / "wards_2027_criteria.toml").read_bytes() == (tmp_path / "wards_criteria.toml").read_bytes()
    _write(tmp_path, "d.csv", "D", 50)
    file.write_text(text.replace('NEW = "records_new.csv"', 'NEW = "d.csv"'))
    (space,) = load_spaces(file)
    (request,) = space.requests()
    before = RunStore(tmp_path / "results").rows("runs", run_ids=[in_use])[0]
    config = request.config
    same = ("strategy", "network", "epochs_per_task", "memory_fraction", "learning_rate", "scenario", "domain", "seed")
    assert {name: config.get(name) for name in same} == {name: before[name] for name in same}
    assert config.start_from == f"run:{in_use}"
    prepare("wards_2027", prepared_root=tmp_path / "prepared", data_root=None)
    frames = encode(config, tmp_path / "results", prepared_root=tmp_path / "prepared")
    tested = {frames.patient_names[person] for person in frames.patients[frames.split == 2]}
    old = set(read(tmp_path / "results", "predictions", run_ids=in_use)["patient"])
    assert tested == old | {"050", "053", "056", "059"}
    assert len(frames) == 80
    assert ContinualRun(config, frames).run() is not None, "its people are no leak"


@pytest.mark.nightly
def test_a_new_ward_is_learned_last_wherever_its_name_sorts(new: Command, in_process: Command, tmp_path: Path) -> None:
    old = ("rehab", "ICU", "general")
    _write(tmp_path, "records.csv", old, 0)
    assert new("wards.py", "--template", "wards").returncode == 0
    (space,) = load_spaces(tmp_path / "wards.py")
    prepare("wards", prepared_root=tmp_path / "prepared", data_root=None)
    order = ("general", "ICU", "rehab")
    run_id = _computed(tmp_path, space.base.replace(strategy="er", epochs_per_task=1, task_order=order))
    assert new("wards_2027.py", "--continue", run_id).returncode == 0
    file = tmp_path / "wards_2027.py"
    _write(tmp_path, "d.csv", ("cardiology", "rehab"), 50)
    file.write_text(file.read_text().replace('NEW = "records_new.csv"', 'NEW = "d.csv"'))
    launched = in_process(
        *(file.name, "--no-ray", "--no-report", "--keep", "predictions"),
        *("--prepared-root", str(tmp_path / "prepared"), "--where", "split_seed == 0"),
    )
    assert launched.returncode == 0, launched.stderr
    (row,) = read(tmp_path / "results", "runs").query("dataset == 'wards_2027'").to_dict("records")
    predictions = read(tmp_path / "results", "predictions", run_ids=row["run_id"])
    learned = predictions.sort_values("evaluated_on")["task"].drop_duplicates().tolist()
    assert learned == ["ward general", "ward ICU", "ward rehab", "ward cardiology"]
    assert "has not learned" not in launched.stderr
    file.write_text(file.read_text().replace("    task_order=wards_in_order(", "    # task_order=wards_in_order("))
    planned = in_process("plan", file.name, "--prepared-root", str(tmp_path / "prepared"))
    warning = f"ward cardiology, which the model of run:{run_id} has not learned, comes before ward rehab, which it has"
    assert f"wards_2027: {warning}" in planned.stdout + planned.stderr
    (line,) = [line for line in launched.stdout.splitlines() if line.startswith("update report of ")]
    said, _, recommended = line.partition(": ")
    assert said.endswith(" of er, against the run that it began from")
    assert f" --against {run_id}" in recommended
    store = RunStore(tmp_path / "results")
    ((what, of_page),) = commands_for(store, store.rows("runs", run_ids=[row["run_id"]])[0])
    assert what == "this run"
    assert f" --against {run_id}" in of_page, "on the dashboard, too"
    assert " --criteria wards_2027_criteria.toml" in recommended
    reported = in_process(*shlex.split(recommended)[1:])
    assert f"-against-{run_id}.html" in reported.stdout, reported.stderr
    assert "began from the model of" not in reported.stdout
    root = ("--prepared-root", str(tmp_path / "prepared"), "--plugins", file.name)
    alone = in_process("update-report", row["run_id"], *root, "--output", "alone.html")
    sentence = (
        f"Run {row['run_id'][:8]} began from the model of run {run_id}, which is not compared here; compare with it: "
        f"update-report {row['run_id'][:8]} --against {run_id}."
    )
    assert sentence in alone.stdout
    head = (tmp_path / "alone.html").read_text().partition('<p class="lead">')[2].partition("</p>")[0]
    assert head.endswith(sentence)


@pytest.mark.nightly
def test_a_run_that_continued_another_is_continued_with_another_ward(new: Command, in_use: str, tmp_path: Path) -> None:
    before = in_use
    expected = set(read(tmp_path / "results", "predictions", run_ids=in_use)["patient"])
    for number, (ward, file) in enumerate((("D", "wards_2027.py"), ("E", "wards_2028.py"))):
        done = new(file, "--continue", before)
        assert (done.returncode, done.stderr) == (0, "")
        first = 50 + 20 * number
        _write(tmp_path, f"{ward}.csv", ward, first)
        text = (tmp_path / file).read_text()
        (tmp_path / file).write_text(text.replace('NEW = "records_new.csv"', f'NEW = "{ward}.csv"'))
        (space,) = load_spaces(tmp_path / file)
        name = file.removesuffix(".py")
        prepare(name, prepared_root=tmp_path / "prepared", data_root=None)
        (request,) = space.requests()
        assert request.config.start_from == f"run:{before}"
        assert len(request.config.task_order) == 4 + number
        frames = encode(request.config, tmp_path / "results", prepared_root=tmp_path / "prepared")
        expected |= {f"{first + person:03}" for person in (0, 3, 6, 9)}
        assert {frames.patient_names[person] for person in frames.patients[frames.split == 2]} == expected
        assert len(frames) == 80 + 20 * number
        before = _computed(tmp_path, request.config)


def test_a_table_of_folds_is_left_out_since_a_column_divides_the_people(
    new: Command, in_use: str, tmp_path: Path
) -> None:
    text = (tmp_path / "wards.py").read_text()
    with_folds = text.replace('files=["hospital"]', 'files=["hospital"],\n    folds="folds.csv"')
    (tmp_path / "wards.py").write_text(with_folds)
    assert new("wards_2027.py", "--continue", in_use).returncode == 0
    _write(tmp_path, "records_new.csv", "D", 50)
    written = (tmp_path / "wards_2027.py").read_text()
    assert "folds" not in written.partition("@dataset")[2]
    assert 'files=["hospital"]' in written
    (space,) = load_spaces(tmp_path / "wards_2027.py")
    assert space.base.start_from == f"run:{in_use}"


def test_new_people_are_tested_by_label_and_name(new: Command, in_use: str, tmp_path: Path) -> None:
    """Of two people with AF and four without, one each is tested: in the order of names alone, none with AF were."""
    assert new("wards_2027.py", "--continue", in_use).returncode == 0
    lines = [HEADER]
    for person in range(50, 56):
        write_wfdb(tmp_path / "hospital", f"p{person}", np.arange(500)[None] * (person - 40) % 997, 50)
        lines.append(f"p{person},{'AF' if person % 3 == 0 else 'sinus rhythm'},{person:03},D,f,50")
    (tmp_path / "hospital" / "records_new.csv").write_text("\n".join(lines))
    (space,) = load_spaces(tmp_path / "wards_2027.py")
    prepare("wards_2027", prepared_root=tmp_path / "prepared", data_root=None)
    (request,) = space.requests()
    frames = encode(request.config, tmp_path / "results", prepared_root=tmp_path / "prepared")
    tested = {frames.patient_names[person] for person in frames.patients[frames.split == 2]}
    assert {name for name in tested if name >= "050"} == {"051", "052"}


def test_a_run_that_cannot_be_continued_is_refused(new: Command, in_use: str, tmp_path: Path) -> None:
    (space,) = load_spaces(tmp_path / "wards.py")
    bare = _computed(tmp_path, space.base.replace(strategy="finetune", epochs_per_task=1, split_seed=1), "predictions")
    refused = new("next.py", "--continue", bare)
    assert refused.returncode == 2
    assert f"the models of run {bare} are not stored; run its search space again with --keep models" in refused.stderr
    text = (tmp_path / "wards.py").read_text()
    (tmp_path / "wards.py").write_text(text.replace('table="records.csv"', 'table=data_root / "records.csv"'))
    refused = new("next.py", "--continue", in_use)
    assert "is not read from a folder with the names of table= and patient= in quotes" in refused.stderr
    assert not list(tmp_path.glob("next*"))
    (tmp_path / "wards.py").write_text(text)
    (tmp_path / "next_criteria.toml").write_text("max_flips = 0.1\n")
    assert "next_criteria.toml: exists already and is not replaced" in new("next.py", "--continue", in_use).stderr
    assert not (tmp_path / "next.py").exists()
    assert (tmp_path / "next_criteria.toml").read_text() == "max_flips = 0.1\n"
    assert new("next.py", "--continue", in_use, "--template", "wards").returncode == 2
