"""Follow a page for readers: write its files, run its commands, and keep the pictures that it shows.

python docs/readers/follow.py      all pages; needs the extra [journal] and Chromium; about four minutes
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
    "ward": {"ward-report.png": "results/report/update-{er}.html"},
    "against_five": {"five-methods.png": "results/report/mine_against_five/figures/methods-with-intervals.png"},
}
"""The pictures of each page, and the file that each is made of, with run ids by method."""
IDS = {"48f591b1": "er", "a12062db": "finetune"}
"""The run ids that pages name, and the methods of these runs: other machines may round otherwise."""
WIDEST, WINDOW = 1400, "1100,780"

_BLOCK = re.compile(r"^```(python|toml|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r'(?:"""|# )(\w+\.\w+)')


def files(page: str) -> dict[str, str]:
    """Return the text of each file of a page, by name: blocks that begin with one."""
    blocks = [text for language, text in _blocks(page) if language != "sh"]
    return {_NAME.match(text)[1]: text for text in blocks if _NAME.match(text)}


def commands(page: str) -> list[list[str]]:
    """Return the commands of a page, in words."""
    shell = "".join(text for language, text in _blocks(page) if language == "sh")
    return [shlex.split(line) for line in shell.replace("\\\n", " ").splitlines()]


def with_ids(words: list[str], ids: dict[str, str]) -> list[str]:
    """Return a command with the run ids of this machine, by method, in place of those of the page."""
    return [ids[IDS[word]] if word in IDS else word for word in words]


def ids_by_method(folder: Path) -> dict[str, str]:
    """Return the id of the only run of each method in the store of a folder."""
    runs = read(folder / "results", "runs", columns=["run_id", "strategy"])
    return dict(zip(runs["strategy"], runs["run_id"], strict=True))


def _blocks(page: str) -> list[tuple[str, str]]:
    return _BLOCK.findall((FOLDER.parent / f"{page}.md").read_text("utf-8"))


def _follow(page: str, folder: Path) -> None:
    """Write the files of a page into a folder, run its commands there, and keep its pictures."""
    for name, text in files(page).items():
        (folder / name).write_text(text)
    programs = {"python": [sys.executable], "clops-sweep": [sys.executable, "-m", "clops_sweep"]}
    for program, *arguments in commands(page):
        ids = ids_by_method(folder) if arguments[0] == "update-report" else {}
        done = subprocess.run([*programs[program], *with_ids(arguments, ids)], cwd=folder)
        if done.returncode and arguments[0] != "update-report":
            sys.exit(f"{page}: {shlex.join([program, *arguments])} failed")
    for name, source in PICTURES[page].items():
        path = folder / source.format(**ids_by_method(folder) if "{" in source else {})
        _keep(_screenshot(path) if path.suffix == ".html" else path, FOLDER / name)


def _screenshot(page: Path) -> Path:
    picture = page.with_suffix(".png")
    subprocess.run(
        [
            *(shutil.which("chromium") or "chromium", "--headless", "--no-sandbox", "--hide-scrollbars"),
            *(f"--window-size={WINDOW}", f"--screenshot={picture}", page.as_uri()),
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
            _follow(page, Path(folder))
