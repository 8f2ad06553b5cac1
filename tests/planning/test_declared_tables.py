"""Columns of tables of data sets that are not prepared: a plan and a launch refuse what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.commands import command
from tests.data.declared_files import forget, waves

SPACE = """
import numpy as np
from pathlib import Path
from clops_sweep import Recording, Recordings, RunConfig, SearchSpace, combine, dataset

COLUMNS = dict(table="table.csv", name="file", label="rhythm", patient="who", domains=["ward"], groups=["sex"])

@dataset("tables", scenarios=["domain_il"], files=["recordings"])
def tables(data_root):
    folder = data_root / "recordings"
    BODY

SPACE = SearchSpace(
    "tables",
    RunConfig(
        dataset="tables", scenario="domain_il", network="small_cnn", epochs_per_task=1, strategy="finetune", DOMAIN
    ),
    {},
    seeds=1,
)
"""
USUAL = 'return Recordings.from_folder(folder, "*.npy", sampling_rate=50, units="mV", channels=["x"], **COLUMNS)'
READ = USUAL.replace(", channels", ', read=lambda path: Recording(np.load(path), domains={"room": "1"}), channels')


def run(
    folder: Path, body: str = USUAL, domain: str = 'domain="ward"', titles: str = "file,rhythm,who,ward,sex"
) -> tuple[Result, Result]:
    """Return the results of `plan` and of a launch on a table whose recordings cannot be read."""
    recordings = folder / "recordings"
    recordings.mkdir()
    rows = []
    for number, signal in enumerate(waves(24, 1, 100)):
        np.save(recordings / f"r{number}.npy", signal)
        rows.append(f"r{number},{'AB'[number // 2 % 2]},p{number // 2},{'XY'[number // 4 % 2]},{'fm'[number % 2]}")
    (recordings / "r3.npy").write_bytes(b"damaged")
    (recordings / "table.csv").write_text("\n".join([titles, *rows]))
    file = folder / "space.py"
    file.write_text(SPACE.replace("BODY", body).replace("DOMAIN", domain))
    arguments = [str(file), "--prepared-root", str(folder / "prepared"), "--results", str(folder / "results")]
    results = []
    for words in (["plan", *arguments], [*arguments, "--no-ray", "--no-report"]):
        forget("tables")
        results.append(CliRunner().invoke(command, [*words, "--data-root", str(folder)]))
    forget("tables")
    return results[0], results[1]


def said(result: Result) -> str:
    return result.output + str(result.exception)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"titles": "file,rhythm,person,ward,sex"}, "table.csv has no column 'who'; it has file, rhythm, person, ward"),
        ({"titles": "file,rhythm,who,room,sex"}, "domains['ward']: "),
        ({"titles": "file,rhythm,who,ward,gender"}, "groups['sex']: "),
        ({"body": USUAL.replace("COLUMNS", 'COLUMNS | {"table": "labels.csv"}')}, "labels.csv is not there"),
        ({"domain": 'domain="wards"'}, "domain_il: 'tables' has no column 'wards' of domains (did you mean 'ward'?)"),
        ({"domain": 'domain="ward", stratify="room"'}, "stratify = 'room': expected a column of its domains; its"),
        ({"body": "raise ValueError('wrong')"}, "the function raises ValueError in line 11: wrong"),  # few files
        ({"body": f"int('wrong')\n    {USUAL}"}, "the function raises ValueError in line 11: invalid literal"),
    ],
)
def test_what_a_table_lacks_is_refused_before_anything_is_prepared(
    change: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    plan, launch = run(tmp_path, **change)
    assert plan.exit_code == 1, said(plan)
    assert sentence in said(plan)
    assert sentence in said(launch)
    assert launch.exit_code != 0
    assert not (tmp_path / "prepared" / "tables").exists()


@pytest.mark.parametrize(
    ("body", "domain"),
    [
        (USUAL, 'domain="ward", stratify="ward"'),
        (READ, 'domain="room"'),  # each recording may give it
        (f"return combine({{'a': {USUAL.removeprefix('return ')}}})", 'domain="source"'),
        ("yield Recording(np.load(folder / 'r3.npy'))", 'domain="hall"'),
        ("return np.load(folder / 'r3.npy').from_folder", 'domain="hall"'),
    ],
)
def test_a_plan_reads_no_recording(body: str, domain: str, tmp_path: Path) -> None:
    """One of the recordings is damaged: a launch is refused, and a plan is not, unless the function reads it."""
    plan, launch = run(tmp_path, body, domain)
    reads_itself = "from_folder" in body and body.startswith("return np")
    assert plan.exit_code == reads_itself, said(plan)
    assert ("not checked before the frames of tables are prepared" in said(plan)) != reads_itself
    assert launch.exit_code != 0
