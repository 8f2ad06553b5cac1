"""Follow a page for readers: write its files, run its commands, and keep the pictures that it shows.

python docs/readers/follow.py         all pages; needs the extra [journal] and Chromium; about four minutes
python docs/readers/follow.py README  the report of the README's sweep, docs/report.png
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from clops_sweep import read

FOLDER = Path(__file__).parent
PICTURES = {
    "paper": {
        "paper-methods.png": "results/report/activities/figures/methods-with-intervals.png",
        "paper-curves.png": "results/report/activities/figures/activities-curves.png",
    },
    "ward": {"ward-report.png": "results/report/update-479593ce.html"},
    "against_five": {"five-methods.png": "results/report/mine_against_five/figures/methods-with-intervals.png"},
}
"""The pictures of each page, and the file that each is made of, with run ids as the page has them."""
RUNS: dict[str, dict[str, str | int]] = {
    "479593ce": {"strategy": "er", "split_seed": 2},
    "9d8d045a": {"strategy": "finetune", "split_seed": 2},
    "983bce30": {"dataset": "wards_2027"},
}
"""The run ids that pages name, and settings that tell these runs: other machines may round otherwise."""
QUICKSTART = FOLDER.parents[1] / "search_spaces" / "quickstart.py"
WIDEST, WINDOW, WINDOW_OF_README = 1400, "1100,780", "1300,950"

_BLOCK = re.compile(r"^```(python|toml|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r'(?:"""|# )(\w+\.\w+)')


def files(page: str) -> dict[str, str]:
    """Return the text of each file of a page, by name: blocks that begin with one."""
    found = {}
    for language, text in _blocks(page):
        name = _NAME.match(text)
        if language != "sh" and name is not None:
            found[name[1]] = text
    return found


def commands(page: str) -> list[list[str]]:
    """Return the commands of a page, in words."""
    shell = "".join(text for language, text in _blocks(page) if language == "sh")
    return [shlex.split(line) for line in shell.replace("\\\n", " ").splitlines()]


def with_ids(text: str, ids: dict[str, str]) -> str:
    """Return a word of a command or a path with the run ids of this machine in place of those of the page."""
    for of_page, here in ids.items():
        text = text.replace(of_page, here)
    return text


def ids_in(folder: Path) -> dict[str, str]:
    """Return the ids in the store of a folder of the runs that pages name, by the ids that pages give them.

    Runs that the commands so far have not computed are left out.
    """
    runs = read(folder / "results", "runs", columns=["run_id", "dataset", "strategy", "split_seed"])
    ids = {}
    for of_page, settings in RUNS.items():
        there = runs
        for name, value in settings.items():
            there = there[there[name] == value]
        if len(there):
            (ids[of_page],) = there["run_id"]
    return ids


def _blocks(page: str) -> list[tuple[str, str]]:
    return _BLOCK.findall((FOLDER.parent / f"{page}.md").read_text("utf-8"))


def _follow(page: str, folder: Path) -> None:
    """Write the files of a page into a folder, run its commands there, and keep its pictures."""
    for name, text in files(page).items():
        (folder / name).write_text(text)
    programs = {"python": [sys.executable], "clops-sweep": [sys.executable, "-m", "clops_sweep"]}
    for program, *arguments in commands(page):
        is_report = arguments[0] == "update-report"
        ids = ids_in(folder) if is_report else {}
        words = [with_ids(word, ids) for word in arguments]
        done = subprocess.run([*programs[program], *words], cwd=folder)
        if done.returncode and not is_report:
            sys.exit(f"{page}: {shlex.join([program, *arguments])} failed")
    ids = ids_in(folder) if page == "ward" else {}
    for name, source in PICTURES[page].items():
        path = folder / with_ids(source, ids)
        _keep(_screenshot(path) if path.suffix == ".html" else path, FOLDER / name)


def _run_quickstart(folder: Path) -> None:
    """Run the sweep of the README in a folder, and keep a picture of its report."""
    subprocess.run([sys.executable, "-m", "clops_sweep", str(QUICKSTART)], cwd=folder, check=True)
    page = folder / "results" / "report" / "quickstart" / "index.html"
    _keep(_screenshot(page, WINDOW_OF_README), FOLDER.parent / "report.png")


def _screenshot(page: Path, window: str = WINDOW) -> Path:
    picture = page.with_suffix(".png")
    subprocess.run(
        [
            *(shutil.which("chromium") or "chromium", "--headless", "--no-sandbox", "--hide-scrollbars"),
            *(f"--window-size={window}", f"--screenshot={picture}", page.as_uri()),
        ],
        check=True,
        capture_output=True,
    )
    return picture


def _keep(source: Path, target: Path) -> None:
    """Store a picture in the documentation: no wider than shown, with 64 colours."""
    picture = Image.open(source).convert("RGB")
    picture.thumbnail((WIDEST, picture.height), Image.Resampling.LANCZOS)
    picture.quantize(64).save(target, optimize=True)


if __name__ == "__main__":
    for page in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            if page == "README":
                _run_quickstart(Path(folder))
            else:
                _follow(page, Path(folder))
