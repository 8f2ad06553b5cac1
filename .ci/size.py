"""Print how long each place is, and end with 1 where one is longer than its number in `.ci/budget.toml`.

Code is counted in logical lines (statements and headers; no docstrings, comments and blank lines), documentation in
words. Run it from the root of the repository.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

BUDGET = Path(__file__).with_name("budget.toml")
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)


def logical_lines(path: str) -> int:
    """Return the number of logical lines of a file, without docstrings and other bare strings."""
    count, bare, empty = 0, True, True
    for token in tokenize.tokenize(io.BytesIO(Path(path).read_bytes()).readline):
        if token.type == tokenize.NEWLINE:
            count, bare, empty = count + (not bare and not empty), True, True
        elif token.type not in LAYOUT:
            empty, bare = False, bare and token.type == tokenize.STRING
    return count


def size(patterns: list[str]) -> int:
    """Return the logical lines of Python files and the words of Markdown files."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\n") if Path(name).is_file()]
    words = sum(len(Path(name).read_text().split()) for name in names if name.endswith(".md"))
    return words + sum(logical_lines(name) for name in names if name.endswith(".py"))


def main() -> None:
    """Print the table; end with 1 where a place is too long."""
    places = tomllib.loads(BUDGET.read_text())
    for name, place in places.items():
        count = size(place["files"])
        print(f"{count:7,d} of {place['most']:7,d}  {name}{'   too long' if count > place['most'] else ''}")
    sys.exit(any(size(place["files"]) > place["most"] for place in places.values()))


if __name__ == "__main__":
    main()
