from __future__ import annotations

import csv
import hashlib
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.report.write import ReportPaths, write_report
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_every_figure_is_there_as_png_pdf_and_svg(report: ReportPaths) -> None:
    names = {path.name for path in report.figures}
    for figure in ("heatmap-auc", "heatmap-bwt", "heatmap-bwt_t", "heatmap-bwt_lambda", "curves"):
        assert {f"grid-{figure}.{ending}" for ending in ("png", "pdf", "svg")} <= names
    for path in report.figures:
        if path.suffix == ".png":
            picture = Image.open(path)
            assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
            pixels = np.asarray(picture.convert("L"))
            assert np.ptp(pixels) > 100, f"{path.name} is blank"
            # what is cut off would touch the edge
            edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
            assert edges.min() == 255, f"{path.name} is cut off"


def test_the_page_needs_nothing_else(report: ReportPaths) -> None:
    text = report.index.read_text("utf-8")
    tags = Reader(text).tags
    drawings = [attributes for _, attributes in tags if attributes.get("class") == "drawing"]
    assert len(drawings) >= 5
    for attributes in drawings:
        assert attributes["role"] == "img"
        assert len(str(attributes["aria-label"])) > 40
    assert all(str(attributes["src"]).startswith("data:image/") for tag, attributes in tags if tag == "img")
    drawn = re.findall(r'<svg [^>]*class="drawing".*?</svg>', text, re.DOTALL)
    parts = [part for drawing in drawn for part in re.findall(r' id="([^"]+)"', drawing)]
    assert len(parts) == len(set(parts)), "no two parts of a page have one name"
    assert set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', text)) <= set(parts)
    assert not [a for tag, a in tags if tag == "script" and "src" in a]
    anchors = {str(a["id"]) for _, a in tags if "id" in a}
    for tag, attributes in tags:
        target = attributes.get("href") if tag in ("a", "link") else None
        if target and target.startswith("#"):
            assert target[1:] in anchors
        elif target and not target.startswith("data:"):
            assert (report.index.parent / target).is_file(), target


def test_failures_and_gaps_are_said(report: ReportPaths) -> None:
    text = report.index.read_text("utf-8")
    assert "3 runs failed: 3 times ValueError: generated failure (generated_store.py:" in text
    assert "32 of 39 runs are finished, 3 failed" in text


def test_the_csv_holds_means_over_seeds(report: ReportPaths, store: RunStore) -> None:
    path = next(path for path in report.tables if path.name == "grid-results.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 13
    runs = store.read("runs").set_index("run_id")
    for row in rows:
        ids = row["run_ids"].split()
        assert len(ids) == int(row["finished"])
        if ids:
            assert math.isclose(float(row["bwt_mean"]), runs.loc[ids, "bwt"].mean(), rel_tol=1e-12)
            assert math.isclose(float(row["auc_sd"]), runs.loc[ids, "auc"].std(), rel_tol=1e-9)
    assert rows[-1]["variant"] == "fine-tuning"


@pytest.mark.nightly
def test_the_same_store_gives_the_same_files_also_through_a_uri(
    report: ReportPaths, spaces: list[SearchSpace], store: RunStore, tmp_path: Path
) -> None:
    again = write_report(spaces, RunStore(f"file://{store.uri}"), tmp_path)

    def digests(paths: ReportPaths) -> dict[str, str]:
        every = (paths.index, *paths.figures, *paths.tables)
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in every}

    assert digests(again) == digests(report)


def test_an_empty_store_and_no_store_give_a_page(spaces: list[SearchSpace], tmp_path: Path) -> None:
    paths = write_report(spaces, RunStore(tmp_path / "nowhere"), tmp_path / "report")
    text = paths.index.read_text("utf-8")
    assert "No run of this search space is finished yet." in text
    assert "0 of 39 runs are finished" in text


@pytest.mark.usefixtures("unpainted")
def test_a_report_shows_the_headline_metrics_of_its_scenario_or_those_that_are_asked_for(
    tmp_path: Path, generated: ModuleType
) -> None:
    axes = {"storage_order": ["top", "random"], "storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.5, 1.0]}
    space = SearchSpace("union", RunConfig(scenario="class_il_union"), axes, seeds=range(3))
    store = RunStore(tmp_path / "results")
    rows = []
    for it in (request.config for request in space.requests()):
        score = 0.5 + 0.1 * it.storage_fraction + 0.01 * ((it.seed + round(7 * it.acquisition_fraction)) % 3)
        values = {"auc": 0.98, "bwt": 0.0, "balanced_accuracy": score, "balanced_accuracy_forgetting": 1 - score}
        rows.append((it, values | {"accuracy": 0.9 * score}))
    generated.write_given_runs(store, rows)
    paths = write_report([space], store, tmp_path / "report")
    shown = {path.stem for path in paths.figures if path.suffix == ".png"}
    metrics = ("balanced_accuracy", "balanced_accuracy_forgetting")
    assert {f"union-{kind}-{name}" for kind in ("heatmap", "difference") for name in metrics} <= shown
    assert not any(name.endswith(("-auc", "-bwt")) for name in shown)
    table = (tmp_path / "report" / "tables" / "union-results.md").read_text()
    assert "| balanced accuracy | Forgetting of balanced accuracy |" in table
    assert "of max over i &lt; N of R[i][j], less R[N][j]; better when lower." in paths.index.read_text("utf-8")
    with (tmp_path / "report" / "tables" / "union-results.csv").open() as file:
        assert next(csv.DictReader(file))["balanced_accuracy_forgetting_mean"]
    paths = write_report([space], store, tmp_path / "other", metrics=["accuracy"])
    assert {path.stem for path in paths.figures if "heatmap" in path.stem} == {"union-heatmap-accuracy"}
    with pytest.raises(UsageError, match=r"metric 'auc_seen': not known"):
        write_report([space], store, tmp_path / "third", metrics=["accuracy", "auc_seen"])
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize(
    ("axes", "names", "message"),
    [
        (("storage_fraction", "depth"), ["one"], "no search space has an axis 'depth'"),
        (None, [], "expected at least one search space"),
        (None, ["a b", "a?b"], "their files would have one name"),
    ],
)
def test_wrong_requests_end_in_a_sentence(
    axes: tuple[str, str] | None, names: list[str], message: str, tmp_path: Path
) -> None:
    spaces = [SearchSpace(name, RunConfig(), {"storage_fraction": [0.1, 0.5]}, seeds=[0]) for name in names]
    with pytest.raises(UsageError, match=message):
        write_report(spaces, RunStore(tmp_path), tmp_path / "report", axes=axes)


def test_latex_tables_are_well_formed(report: ReportPaths) -> None:
    for path in report.tables:
        if path.suffix != ".tex":
            continue
        text = path.read_text("utf-8")
        tabulars = re.findall(r"begin{tabular}{((?:[lc]|p{\d+pt})+)}(.*?)\\end{tabular}", text, re.S)
        assert tabulars
        for alignment, content in tabulars:
            columns = len(re.sub(r"{\d+pt}", "", alignment))
            rows = [line for line in content.splitlines() if line.endswith(r"\\")]
            assert len(rows) > 1
            for row in rows:
                spanned = sum(int(n) - 1 for n in re.findall(r"multicolumn{(\d+)}", row))
                assert len(re.findall(r"(?<!\\)&", row)) + 1 + spanned == columns, row
                assert row.count("{") == row.count("}")
                assert row.count("$") % 2 == 0
                assert not re.search(r"(?<![$\w-])-\d", row), f"a hyphen stands for a minus in {row}"
                assert row.isascii(), row
