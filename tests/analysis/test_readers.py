"""The pages for readers: their files ask for the runs that they say, and their commands work in the order given."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import clops_sweep.cli
from tests.helpers.documentation import FOLLOWED
from tests.helpers.preloaded import Preloaded

FOLDER = Path(__file__).parents[2] / "docs" / "readers"
ASKED = {
    "paper": ("activities.py", "20 runs asked for"),
    "ward": ("wards.py", "10 runs asked for"),
    "against_five": ("my_method.py", "2 trials asked for"),
}
SMALLER = {r"epochs_per_task=\d+": "epochs_per_task=1", r"range\(5\)": "range(3)"}
"""What the files say, and what is run; a claim needs three patient splits."""


@pytest.fixture
def follow(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("follow", FOLDER / "follow.py")


def test_each_page_is_followed(follow: ModuleType) -> None:
    assert tuple(follow.PICTURES) == FOLLOWED == tuple(ASKED)
    for page, pictures in follow.PICTURES.items():
        text = (FOLDER.parent / f"{page}.md").read_text("utf-8")
        assert set(re.findall(r"\(readers/([\w-]+\.png)\)", text)) == set(pictures)
        assert all(0 < (FOLDER / name).stat().st_size < 100_000 for name in pictures)


@pytest.mark.parametrize("page", ASKED)
@pytest.mark.nightly
def test_the_search_space_of_a_page_asks_for_its_runs(
    page: str, follow: ModuleType, tmp_path: Path, environment: dict[str, str], commands: Preloaded
) -> None:
    for name, text in follow.files(page).items():
        (tmp_path / name).write_text(text)
    is_first = True
    for program, *words in follow.commands(page):
        if program == "python" and is_first:  # plan looks whether the recordings exist, and reads their table
            subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
            is_first = False
        elif words[0] == "new":
            assert commands.run(tmp_path, environment, *words).returncode == 0
    file, said = ASKED[page]
    done = commands.run(tmp_path, environment, "plan", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("page", ASKED)
def test_the_commands_of_a_page_work_in_order(
    page: str, follow: ModuleType, tmp_path: Path, environment: dict[str, str], forked: Preloaded
) -> None:
    for name, text in follow.files(page).items():
        if name != "wards_2027.py":  # it has the epochs of the model that it continues
            for said, run in SMALLER.items():
                text = re.sub(said, run, text)
        (tmp_path / name).write_text(text)
    printed = []
    own_data = environment | {"CLOPS_PREPARED_ROOT": str(tmp_path / "prepared")}  # pages share names of data sets
    for program, *words in follow.commands(page):
        if program == "python":
            subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
            continue
        is_report = words[0] == "update-report"
        if is_report:
            ids = follow.ids_in(tmp_path)
            words = [follow.with_ids(word, ids) for word in words]
        if words[0].endswith(".py"):
            words = [*words, "--no-ray", "--no-report"] if page == "ward" else [*words, "--no-ray"]
        done = forked.run(tmp_path, own_data, *words)
        assert done.returncode in ((0, 1, 3) if is_report else (0,)), done.stderr
        printed += [*done.stdout.splitlines(), *done.stderr.splitlines()]
    ids = follow.ids_in(tmp_path) if page == "ward" else {}
    for source in follow.PICTURES[page].values():
        assert (tmp_path / follow.with_ids(source, ids)).is_file()
    if page == "ward":
        shown = _output_of(page, until="## Few patients")
        shown += _output_of(page, since="## A ward that comes later", until="## Everyone tested once")
        missing = _shapes(shown) - _shapes(printed)
        assert not missing


VERDICT = re.compile(r"^  (FAILS|holds|-----)  .*|^\d+ of \d+ acceptance criteria .*")
"""Lines that depend on rounding."""


def _output_of(page: str, until: str, since: str = "") -> list[str]:
    """Return the lines of output that a page shows before a heading, and after another if one is given."""
    text = (FOLDER.parent / f"{page}.md").read_text("utf-8").partition(until)[0]
    text = text.partition(since)[2] if since else text
    blocks = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return "".join(blocks).splitlines()


def _shapes(lines: list[str]) -> set[str]:
    """Return lines without their numbers, run ids and spaces."""
    plain = [line for line in lines if not VERDICT.match(line)]
    run_id = r"\b(?:[0-9a-f]{24}|[0-9a-f]{8})\b"
    return {re.sub(rf"{run_id}|[-+]?\d[\d,.]*|\s+|[─━┏┓┗┛┳┻╇┡┩│┃└┘┴┬]", "", line) for line in plain}


def test_the_limits_of_the_page_are_those_of_the_template() -> None:
    template = Path(clops_sweep.cli.__file__).parent / "recipes" / "wards.toml.template"
    first, _, limits = template.read_text("utf-8").partition("\n\n")
    assert first.startswith("# Acceptance criteria")
    assert f"```toml\n{limits}```" in (FOLDER.parent / "ward.md").read_text("utf-8")


def test_run_ids_of_a_page_are_replaced(follow: ModuleType) -> None:
    ((one, _), *_) = follow.RUNS.items()
    assert follow.with_ids(f"update-{one}.html", {one: "a"}) == "update-a.html"
