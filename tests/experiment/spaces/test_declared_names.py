"""Which files can be loaded together, as their text says."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.declared_names import declared_names, loadable_together
from clops_sweep.experiment.spaces.executed_file import names_in

FILES = {
    "wards.py": """
        from clops_sweep import dataset
        @dataset("wards_together", scenarios=("class_il",))
        def wards(data_root): return 1
    """,
    "kept.py": """
        import clops_sweep
        @clops_sweep.dataset("wards_together", scenarios=("class_il",))
        def wards(data_root): return 2
    """,
    "ward_d.py": """
        from wards import wards
        from clops_sweep import dataset
        @dataset("ward_d_together", scenarios=("class_il",))
        def ward_d(data_root): return 3
    """,
    "published.py": "from clops_sweep import RunConfig",
    "broken.py": "def (",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(
            "\n".join(line[8:] if line.startswith(" " * 8) else line for line in text.split("\n"))
        )
    return tmp_path


def test_files_that_declare_one_name_are_in_groups_of_their_own(folder: Path) -> None:
    files = [folder / name for name in ("ward_d.py", "kept.py", "wards.py", "published.py", "broken.py", "absent.py")]
    ward_d, kept, wards, *others = files
    assert loadable_together(files) == [[ward_d, wards, *others], [kept]]
    assert loadable_together([]) == []
    assert declared_names(ward_d) == {
        ("dataset", "ward_d_together"): ward_d,
        ("dataset", "wards_together"): wards,
    }


def test_the_groups_are_those_that_can_be_executed(folder: Path) -> None:
    try:
        for name in ("ward_d.py", "wards.py"):
            names_in(folder / name)
        with pytest.raises(UsageError, match="with other code"):
            names_in(folder / "kept.py")
    finally:
        for name in ("wards_together", "ward_d_together"):
            DATASETS.forget(name)
