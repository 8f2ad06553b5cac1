"""Misspelt names in search-space files: the sentence proposes the name that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.executed_file import names_in
from clops_sweep.experiment.spaces.space_files import load_file

CASES = {
    "from clops_sweep import OptunaSerach": (
        "ImportError in line 1: cannot import name 'OptunaSerach' from 'clops_sweep' (did you mean 'OptunaSearch'?)"
    ),
    "from clops_sweep import RunConfig\nRunConfg()": (
        "NameError in line 2: name 'RunConfg' is not defined (did you mean 'RunConfig'?)"
    ),
    "Claimm": "NameError in line 1: name 'Claimm' is not defined (did you mean 'Claim'?)",
    "TuneOn": "NameError in line 1: name 'TuneOn' is not defined (from clops_sweep import TuneOn)",
    "import clops_sweep as cs\ncs.SerchSpace": "No clops_sweep attribute SerchSpace (did you mean 'SearchSpace'?)",
    "import math\nmath.sqroot": "module 'math' has no attribute 'sqroot' (did you mean 'sqrt'?)",
    "import clops_swep": "No module named 'clops_swep' (did you mean 'clops_sweep'?)",
    "from wrd import x": "No module named 'wrd' (did you mean 'ward'?)",
    "import nothing_similar": "No module named 'nothing_similar'",
    "raise ValueError('RunConfg')": "ValueError in line 1: RunConfg",
}


@pytest.mark.parametrize("text", CASES)
def test_a_misspelt_name_is_proposed(text: str, tmp_path: Path) -> None:
    (tmp_path / "ward.py").write_text("")
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(UsageError) as refused:
        names_in(tmp_path / "own.py")
    assert str(refused.value).endswith(CASES[text])


def test_a_file_of_a_similar_name_is_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ward.py").write_text("SPCE = None\n")
    with pytest.raises(UsageError) as refused:
        load_file(Path("wrad.py"))
    assert str(refused.value) == "wrad.py: no such search-space file (did you mean 'ward.py'?)"
    with pytest.raises(UsageError) as refused:
        load_file(Path("other.py"))
    assert str(refused.value) == "other.py: no such search-space file"


def test_a_search_space_of_another_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from clops_sweep import RunConfig, SearchSpace\nSPCE = SearchSpace('a', RunConfig())\n"
    )
    with pytest.raises(UsageError, match=r"own\.py defines no SPACE, but the search space SPCE; expected SPACE = "):
        load_file(tmp_path / "own.py")
