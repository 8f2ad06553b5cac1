"""Write docs/results/datasets.md: the counts that `clops-sweep data prepare NAME --markdown` prints.

python docs/results/datasets.py --data-root DIR
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from clops_sweep.cli.commands import command

DOCUMENT = Path(__file__).with_name("datasets.md")
HEAD = """# Frames and patients of each data set

`python docs/results/datasets.py --data-root DIR` made this page: what
`clops-sweep data prepare NAME --markdown` prints, without the counts per patient, for split seed 0.
[Data sets](../datasets.md) describes them. `physionet2020` and `ptbxl` are excerpts of 150 and 500
recordings.
"""
NAMES = ("mitbih", "mitbih_vfdb", "physionet2020", "ptbxl", "synthetic")
LEFT_OUT = (": frames per patient", ": signals")


def tables(name: str, *roots: str) -> Iterator[str]:
    """Yield the tables of a data set in Markdown, each after its title."""
    printed = CliRunner().invoke(
        command, ["data", "prepare", name, "--markdown", *roots], standalone_mode=False, catch_exceptions=False
    )
    for title, rows in re.findall(rf"^ *({name}\b.*?) *\n(?: *\n)+((?:\|.*\n)+)", printed.stdout, re.MULTILINE):
        if not title.endswith(LEFT_OUT):
            yield f"*{title}*\n\n{rows}"


if __name__ == "__main__":
    parts = [HEAD]
    for each in NAMES:
        roots = [] if each == "synthetic" else sys.argv[1:]
        parts += [f"## {each}\n", *tables(each, *roots)]
    DOCUMENT.write_text("\n".join(parts))
