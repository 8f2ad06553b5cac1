"""Run every `clops-sweep` command of the README and the docs with real files and ids, and one run of each launch.

python tools/documented_commands.py [WORD]    only commands that contain WORD; ends with 1 where one fails
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from clops_sweep import read

ROOT = Path(__file__).parents[1]
SPACE = """from clops_sweep import RunConfig, SearchSpace
SPACE = SearchSpace("small", RunConfig(dataset="synthetic", epochs_per_task=1), {}, seeds=1)
"""
NOT_RUN = {
    "s3://": "needs a bucket", "mlflow": "needs a server", "wandb": "needs an account", "HOST": "needs a cluster",
    "--device gpu": "needs a GPU", "my_encoder": "needs weights", "data download": "needs the network",
    "cardiology": "needs data behind a form", "--shard": "is one of several", "$": "is part of a script",
}  # fmt: skip
SECONDS = 900.0


def commands() -> Iterator[tuple[str, str]]:
    """Yield page and command of each line of a shell block that begins with clops-sweep."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block in re.findall(r"^```(?:sh|shell|bash|console)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            for line in block.replace("\\\n", " ").splitlines():
                if line.removeprefix("$ ").startswith("clops-sweep "):
                    yield page.name, line.removeprefix("$ ")


def fitted(command: str, run_ids: list[str], data_root: str) -> list[str]:
    """Return the words of a command with a real file, folder and run for each placeholder, and one run of a launch."""
    words = shlex.split(command, comments=True)
    last = len(run_ids) - 1
    for place, word in enumerate(words):
        if word == "DIR":
            words[place] = data_root
        elif re.fullmatch(r"RUN_ID|OTHER_ID|[0-9a-f]{4,24}", word) and last >= 0:
            words[place] = run_ids[min(words[:place].count(run_ids[0]), last)]
        elif word.endswith(".py") and not (ROOT / word).is_file():
            Path(word).write_text(SPACE)
    return [*words, "--limit", "1"] if words[1].endswith(".py") and "--limit" not in words else words


def outcome(words: list[str]) -> tuple[int, str]:
    """Return the exit status of a command and the end of its output; a server is interrupted after ten seconds."""
    serves = words[1] == "dashboard" or "--watch" in words
    running = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        said, _ = running.communicate(timeout=10 if serves else SECONDS)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
        return (0 if serves else 124), said[-600:]
    return running.returncode, said[-600:]


def main() -> None:
    """Run them in a temporary folder, in the order of the pages."""
    data_root, only = os.environ.get("CLOPS_DATA_ROOT", ""), " ".join(sys.argv[1:])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ("search_spaces", "docs"):
            Path(name).symlink_to(ROOT / name)
        Path("first.py").write_text(SPACE)
        Path("criteria.toml").write_text("max_flips = 1.0\n")
        first = ["clops-sweep", "first.py", "--keep", "models", "--keep", "predictions"]
        print(*outcome([*first, "--seeds", "2"]), sep="\n")
        for page, command in commands():
            if only not in command:
                continue
            why = next((why for word, why in NOT_RUN.items() if word in command), None)
            if why is None and "--data-root" in command and not data_root:
                why = "needs CLOPS_DATA_ROOT"
            newest = read("results", "runs").sort_values("started_at", ascending=False)["run_id"].tolist()
            status, said = (0, "") if why else outcome(fitted(command, newest, data_root))
            failed += status != 0
            print(
                f"{'not run: ' + why if why else 'ok' if status == 0 else f'FAILED ({status})'}\t{page}\t{command}",
                flush=True,
            )
            if status:
                print(said, flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
