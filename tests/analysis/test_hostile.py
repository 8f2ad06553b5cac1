"""Names, labels and errors that would do something where they are shown: in a report they are text."""

from __future__ import annotations

import csv
import io
import re
from types import ModuleType

import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.report.write import ReportPaths, write_report
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import record_failure

LABELS = [
    '=HYPERLINK("http://nowhere","x")',
    "+1+cmd|' /C calc'!A0",
    "@SUM(1)",
    "-2+3",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "--><script>alert(2)</script><!--",
    r"\input{/etc/passwd} % & # _ ~ ^ { } $x$",
    "$\\frac{",
    "[2ex] *",
    "![a](javascript:alert(3))",
]
ERROR = (
    "Traceback (most recent call last):\nValueError: \x1b[2J\x1b]0;owned\x07</p><script>alert(4)</script>{{ 7 * 7 }}\n"
)
TASKS = ("<b>0-1</b>", "2-3\x1b[2J", "$4-5$", "6-7")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, generated: ModuleType) -> ReportPaths:
    variants = {label: {"mc_samples": 5 + position} for position, label in enumerate(LABELS)}
    base, axes = RunConfig(epochs_per_task=5), {"=variant <i>$": variants}
    spaces = [SearchSpace("=1+1 <script> $x_{&", base, axes, seeds=[0, 1])]
    spaces.append(SearchSpace("fine-tuning", base.replace(strategy="finetune"), seeds=[0, 1]))
    store = RunStore(tmp_path_factory.mktemp("results"))
    generated.write_generated_runs(store, spaces, keep=lambda config: config.mc_samples != 6, tasks=TASKS, instances=8)
    failed = {
        base.replace(mc_samples=6, seed=seed).run_id("generated0001"): base.replace(mc_samples=6, seed=seed)
        for seed in (0, 1)
    }
    record_failure(store, failed, ERROR, lambda _: "generated0001", {"host": "<script>"})
    return write_report(spaces, store, tmp_path_factory.mktemp("report"))


@pytest.mark.nightly
def test_no_cell_of_a_csv_file_is_a_formula(written: ReportPaths) -> None:
    seen = set()
    for path in (path for path in written.tables if path.suffix == ".csv"):
        for line in csv.reader(io.StringIO(path.read_text("utf-8"))):
            for cell in line:
                assert cell[:1] not in ("=", "@", "\t", "\r"), cell
                if cell[:1] in ("+", "-"):
                    float(cell)
                seen.add(cell)
    assert seen >= {f"'{label}" for label in LABELS[:4]}
    assert any(re.fullmatch(r"-0\.\d+", cell) for cell in seen), "numbers below zero stay numbers"


@pytest.mark.nightly
def test_text_is_escaped_in_pages_and_tables(written: ReportPaths) -> None:
    page = written.index.read_text("utf-8")
    assert not re.search(r"<script>alert|<img src=x|<b>0-1|\x1b", page)
    latex, markdown = (
        "".join(it.read_text("utf-8") for it in written.tables if it.suffix == end) for end in (".tex", ".md")
    )
    assert r"\input" not in latex
    assert r"\% \& \#" in latex
    assert not re.search(r"(?<!\\)<script>", markdown)
    assert r"cmd\|" in markdown
