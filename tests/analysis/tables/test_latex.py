"""Every table in LaTeX has the headings and numbers of its data, and each number says whose it is."""

from __future__ import annotations

import ast
import csv
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.drawing.pictures import Picture, Sketch
from clops_sweep.analysis.formats import DASH, TextCell, TextTable, label_cell
from clops_sweep.analysis.metrics import METRICS, metric_named
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.tables.latex import LONG, figure_to_latex, to_latex
from clops_sweep.cli.commands import command
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import forget

ROOT = Path(__file__).parents[3]
FILES = {
    "analysis/formats.py:result_text": "*-results",
    "analysis/formats.py:published_text": "*-published",
    "analysis/tables/best.py:best_text": "best",
    "analysis/tables/comparisons.py:comparison_text": "*-differences",
    "analysis/tables/patients.py:patients_text": "*-patients",
    "analysis/tables/tuning.py:tuning_text": "tuning-*",
    "analysis/report/claims_section.py:claims_text": "claims",
    "analysis/search_trials.py:best_trials_text": "*-trials",
}
"""The files of the tables that each function makes."""

HTML_ALONE = {"analysis/update/page.py:_table"}
"""Functions whose tables are written as HTML alone."""

ELSEWHERE = {"analysis/tables/by_task.py:by_task_text", "analysis/tables/by_task.py:forgetting_text"}
"""Functions whose tables have a column for each task, compared in tests/analysis/dashboard/test_dashboard_pages.py."""

ELSEWHERE |= {"analysis/report/claims_section.py:_history_text"}  # in tests/cli/test_claims.py

SENTENCES = {"analysis/report/setup_table.py:setup_text"}
"""Functions whose tables hold sentences, a row for one or more rows of the data."""

COLUMNS = {metric_named(name).latex: name for metric in METRICS for name in (metric, f"test_{metric}")}
COLUMNS |= {"validation AUC": "auc", "test AUC": "test_auc", "validation BWT": "bwt", "test BWT": "test_bwt"}
PLAIN = {metric_named(name).plain: name for name in COLUMNS.values()} | {"seconds": "seconds"}
OF_METRIC = {
    "mean": ("{}_mean", "{}_sd"),
    "ours": ("{}_mean", "{}_sd"),
    "validation": ("{}_mean", "{}_sd"),
    "test": ("test_{}_mean", "test_{}_sd"),
    "published": ("{}_published_mean", "{}_published_sd"),
    "diff.": ("{}_difference",),
    "difference": ("{}_difference", "{}_low", "{}_high"),
    "p": ("{}_p_holm",),
}
"""The numbers of a column of a metric, by its heading."""

OF_BEST = {
    "mean": ("mean", "low", "high", "lowest", "highest"),
    "minus finetune": ("minus_fine_tuning", "difference_low", "difference_high"),
    "p": ("p_holm",),
}
"""As `OF_METRIC`, of the best configurations, which have a row for each metric."""

NUMBERS = {
    "patients": {
        "test patients": ("units",),
        "value": ("value", "low", "high"),
        "minus the first": ("minus_first", "minus_first_low", "minus_first_high"),
    },
    "tuning": {
        "trials": ("trials",),
        "runs": ("runs",),
        "compute": ("seconds",),
        "Average AUC while tuning": ("while_tuning", "while_tuning_sd"),
        "test average AUC reported": ("reported", "reported_sd"),
        "n": ("n",),
        "reported runs": ("reported_runs",),
        "test average AUC, tasks of tuning": ("same_tasks", "same_tasks_sd"),
        "optimism [95 %, unadjusted]": ("optimism", "low", "high"),
        "test people seen": ("percent_seen",),
    },
    "claims": {
        "difference": ("difference", "low", "high"),
        "level": ("percent_level",),
        "n": ("n",),
        "smallest relevant difference": ("matters",),
        "p, as claimed": ("p_for_holm",),
        "p, contrary": ("p_against_holm",),
    },
    "trials": {"runs": ("n",), "seconds": ("mean_seconds", "sd_seconds")},
    "results": {"runs": ("finished",)},
    "published": {"runs": ("finished",)},
    "best": {"n": ("n",)},
    "differences": {"n": ("pairs",)},
}
"""The numbers of the other columns, by their headings."""

TEXTS = {"run": "run_id", "claim": "sentence", "minus": "baseline", "search space": "search_space", "source": "paper"}
"""The column of the data of a column of texts; the others have the name of their heading."""

STUDY = """
import numpy as np
from clops_sweep import (
    Claim, Contrast, FloatDistribution, OptunaSearch, Recordings, RunConfig, SearchSpace, Side, TuneOn, dataset,
)


@dataset("ward", scenarios=("class_il",))
def ward(data_root):
    random, labels = np.random.default_rng(0), np.arange(96) % 4
    signals = random.normal(size=(96, 1, 64)).astype(np.float32) + 0.5 * labels[:, None, None]
    return Recordings(signals, 50, ("II",), "mV", labels, ("rest", "walk", "run", "stairs"), np.arange(96) // 4)


BASE = RunConfig(dataset="ward", network="linear", epochs_per_task=1)
METHODS = {"er": {"learning_rate": [1e-4, 1e-2]}, "finetune": {"learning_rate": [1e-4, 1e-2]}}
RATES = {"learning_rate": FloatDistribution(1e-4, 1e-2), "weight_decay": FloatDistribution(0.0, 0.1)}
BY_TWO = OptunaSearch(objectives={"auc": "maximize", "seconds": "minimize"}, parameters=RATES, n_trials=3)
FRACTIONS = {"storage_fraction": [0.25, 0.5], "acquisition_fraction": [0.25, 0.5]}
SPACE = [
    SearchSpace("tuned", BASE, search=OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(tasks=1)), seeds=3),
    SearchSpace("searched", BASE, search=BY_TWO, seeds=2),
    SearchSpace("beta", BASE, FRACTIONS | {"acquisition": ["bald_mcp", "random"]}, seeds=3),
]


def side(acquisition):
    return Side(acquisition, {"acquisition": acquisition, "storage_fraction": 0.25, "acquisition_fraction": 0.25})


BALD, RANDOM = side("bald_mcp"), side("random")
CLAIMS = [
    Claim("bald", "BALD is above random replay", Contrast(BALD, RANDOM, "test_auc")),
    Claim("worst", "The worst task gains", Contrast(BALD, RANDOM, "worst_task")),
    Claim("fast", "BALD trains fewer than 100 instances less", Contrast(BALD, RANDOM, "replayed"), matters=100.0),
]
"""


def cells(line: str) -> list[str]:
    return [as_text(cell) for cell in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]


def as_text(cell: str) -> str:
    """Return the text of a cell of LaTeX; names of metrics and spans stay as they are."""
    cell = cell.strip()
    if stacked := re.fullmatch(r"\\shortstack\[[lc]\]{(.*)}", cell):
        cell = " ".join(stacked[1].replace(r"\\", " ").split())
    if cell in COLUMNS or cell.startswith(r"\multicolumn"):
        return cell
    cell = re.sub(r"^\\textbf{(.*)}$", r"\1", cell).replace("{}", "").replace("~", " ")
    cell = cell.replace(r"$\pm$", "±").replace("$<$", "<").replace(r"$\lambda$", "λ")
    return re.sub(r"\\([&%$#_{}])", r"\1", re.sub(r"\$(-[\d.]+)\$", r"\1", cell))


def tabulars(text: str) -> Iterator[tuple[list[tuple[str, str]], list[list[str]]]]:
    """Yield the columns of each tabular, as metric and heading, and its rows."""
    for content in re.findall(r"begin{(?:tabular|longtable)}{[^\n]*\n(.*?)\\end{(?:tabular|longtable)}", text, re.S):
        head, body = content.split(r"\midrule", 1)
        body = body.partition(r"\endhead")[2] or body
        lines = [line for line in head.splitlines() if line.endswith(r"\\") and not line.startswith(r"\caption")]
        names = cells(lines[-1])
        groups = [name if name in COLUMNS else "" for name in names]
        if len(lines) > 1:
            groups = []
            for cell in cells(lines[0]):
                span = re.fullmatch(r"\\multicolumn{(\d+)}{c}{(.*)}", cell)
                groups += [span[2]] * int(span[1]) if span else [cell]
        else:
            names = ["mean" if name in COLUMNS else name for name in names]
        rows = [cells(line) for line in body.splitlines() if line.endswith(r"\\")]
        yield list(zip(groups, names, strict=True)), rows


def functions_with_tables() -> set[str]:
    """Return the functions of the analysis that make tables, from the syntax trees."""
    found = set()
    for file in (ROOT / "analysis").rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
            if any(isinstance(name, ast.Name) and name.id == "TextTable" for name in called):
                found.add(f"{file.relative_to(ROOT).as_posix()}:{function.name}")
    return found


def test_each_function_that_makes_tables_is_compared() -> None:
    assert functions_with_tables() == FILES.keys() | HTML_ALONE | SENTENCES | ELSEWHERE


def of_generated_runs(folder: Path, generated: ModuleType) -> None:
    """Write a report with the paper's cells, fine-tuning trained alike, and other methods."""
    base = RunConfig(dataset="cardiology")
    spaces = [
        SearchSpace("grid", base, {"storage_fraction": [0.25, 0.5]}, seeds=range(4)),
        SearchSpace("methods", base, {"strategy": ["finetune", "er"]}, seeds=range(4)),
    ]
    store = RunStore(folder / "generated")
    rows = []
    for number, request in enumerate(request for space in spaces for request in space.requests()):
        value = 0.5 + 0.07 * (number % 5) + 0.01 * number
        columns = {"auc": value, "bwt": 0.1 - value / 3, "bwt_t": 0.02 * number, "bwt_lambda": -0.01 * number}
        rows.append((request.config, columns | {f"test_{name}": it - 0.05 for name, it in columns.items()}))
    generated.write_given_runs(store, rows)
    write_report(spaces, store, folder / "of generated")


def of_a_launch(folder: Path) -> None:
    """Launch a study with tuning, a search, a grid and claims, and write its report."""
    (folder / "study.py").write_text(STUDY)
    of_study = (folder / "study.py", "--results", folder / "results", "--prepared-root", folder / "prepared")
    for words in (
        ("launch", *of_study, "--no-ray", "--no-report", "--keep", "predictions"),
        ("report", *of_study, "--output", folder / "of a launch"),
    ):
        done = CliRunner().invoke(command, [*map(str, words)], standalone_mode=False)
        forget("ward")
        assert done.exit_code == 0, done.output
        assert done.exception is None


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, generated: ModuleType) -> Path:
    """A folder with two reports that have every kind of table; figures are not drawn."""
    folder = tmp_path_factory.mktemp("latex")

    def empty(item: Sketch) -> Picture:
        return Picture(item.name, item.title, item.caption, "", b"\x89PNG\r\n\x1a\n", b"%PDF", "<svg />", 1, 1)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Sketch, "drawn", empty)
        of_generated_runs(folder, generated)
        of_a_launch(folder)
    return folder


Row = dict[str, str]


def data_of(path: Path, kind: str, store: RunStore) -> list[Row]:
    """Return the rows of a table's data, with numbers that the table derives from others."""
    with path.with_suffix(".csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if kind == "patients":
            assert len({run_id[:8] for run_id in store.statuses()}) == len(store.statuses())
            row["run_id"] = row["run_id"][:8]  # the data have it whole
        elif kind == "tuning":
            row["percent_seen"] = str(100 * float(row["test_people_seen"]))
        elif kind == "claims":
            row["percent_level"] = str(100 * float(row["level"])) if row["level"] else ""
            row["data"] = f"{row['scenario']}, {row['dataset']}"
            row["measure"] = metric_named(row["measure"]).plain
        elif kind == "differences":
            row["pairs"] = max((value for name, value in row.items() if name.endswith("_pairs")), key=int)
        elif kind == "trials":
            runs = store.read("runs", row["run_ids"].split())
            row["n"] = str(len(runs))
            for name in ("auc", "seconds"):
                row[f"sd_{name}"] = str(np.std(runs[name], ddof=1))
    return rows


def shown_rows(kind: str, data: Sequence[Row], rows: Sequence[Sequence[str]], metric: str) -> list[Row]:
    """Return the rows of the data that a table shows."""
    if kind == "trials":
        by_number = {row["trial"]: row for row in data}
        return [by_number[cells[0]] for cells in rows]
    if kind == "claims":  # the data have every difference of every claim, the table the one that decides
        return [_decisive(cells, data) for cells in rows]
    if kind == "best":
        return list(_of_metric(data, metric))
    return list(data)


def _of_metric(data: Sequence[Row], metric: str) -> Iterator[Row]:
    """Yield the row of a metric for each configuration, by default of its first; empty values if it has no such row."""
    configurations: dict[tuple[str, str], list[Row]] = {}
    for row in data:
        configurations.setdefault((row["search_space"], row["configuration"]), []).append(row)
    for rows in configurations.values():
        fitting = [row for row in rows if row["metric"] == (metric or rows[0]["metric"])]
        yield fitting[0] if fitting else dict.fromkeys(rows[0], "")


def _decisive(cells: Sequence[str], data: Sequence[Row]) -> Row:
    of_claim = [row for row in data if row["sentence"] == cells[0] and row["measure"] == cells[2]]
    return next(row for row in of_claim if agree(cells[4].partition(" ")[0].rstrip(","), [row["difference"]]))


def agree(cell: str, exact: Sequence[str]) -> bool:
    """Return whether a cell shows these numbers, each rounded to the decimals that it shows."""
    numbers = re.findall(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", cell)
    values = [float(value) for value in exact if value]
    if cell.startswith("<"):
        return len(values) == 1 and values[0] < float(numbers[0])
    if len(numbers) != len(values):
        return False
    for number, value in zip(numbers, values, strict=True):
        digits = number.replace(",", "").partition(".")[2]
        if abs(float(number.replace(",", "")) - value) > 0.5000001 * 10.0 ** -len(digits):
            return False
    return True


def disagreements(path: Path, kind: str, store: RunStore) -> Iterator[str]:
    """Yield every heading that is unknown, and every cell that differs from the data."""
    data = data_of(path, kind, store)
    of_metric: Mapping[str, Sequence[str]] = OF_BEST if kind == "best" else OF_METRIC
    if kind == "trials":
        of_metric = {"mean": ("mean_{}", "sd_{}")}
    for columns, rows in tabulars(path.read_text()):
        for place, (group, heading) in enumerate(columns):
            metric = COLUMNS.get(group, "")
            names = of_metric.get(heading) if metric else NUMBERS[kind].get(heading)
            expected = shown_rows(kind, data, rows, metric)
            assert len(rows) == len(expected), path.name
            for cells_of_row, row in zip(rows, expected, strict=True):
                cell = cells_of_row[place]
                if names is not None:
                    exact = [row.get(name.format(metric), "missing column") for name in names]
                    shown = [exact]
                    if kind == "best" and heading == "mean":  # an interval, else the range, or the mean alone
                        mean, low, high, lowest, highest = exact
                        shown = [[mean, low, high] if low else [mean, lowest, highest], [mean]]
                    if "missing column" in exact or not any(agree(cell, numbers) for numbers in shown):
                        yield f"{path.name}, {heading}: {cell!r} shows {exact}"
                    continue
                text = row.get(TEXTS.get(heading, heading), row.get(heading.replace(" ", "_")))
                if text is None or (cell != text.replace("—", "--") and not agree(cell, [text])):
                    yield f"{path.name}, {heading}: {cell!r} shows {text!r}"


@pytest.mark.parametrize("function", FILES)
def test_headings_and_cells_are_those_of_the_data(reports: Path, function: str) -> None:
    pattern = FILES[function]
    paths = sorted(reports.glob(f"of */tables/{pattern}.tex"))
    assert paths, "no report has a table of this function"
    store = RunStore(reports / "results")
    wrong = [text for path in paths for text in disagreements(path, pattern.strip("*-"), store)]
    assert wrong == []


def width_in_points(kinds: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> float:
    """Return the width of a table set in 9 points: 0.5 em a character on average, and 4 points beside each column."""
    width = 0.0
    of_columns = zip(re.findall(r"p{(\d+)pt}|[lc]", kinds), columns, zip(*rows, strict=True), strict=True)
    for wrapped, (group, heading), cells_of_column in of_columns:
        texts = [re.sub(r"[$\\{}]|textbf", "", cell) for cell in cells_of_column]
        words = [] if group else heading.split()
        longest = max(map(len, [*texts, *words]))
        width += (float(wrapped) if wrapped else 4.5 * longest) + 8
    return width


def test_tables_of_scores_fit_on_a_page_of_two_columns(reports: Path) -> None:
    """The tables of scores and of tuning were scaled down to fit: they had all columns side by side."""
    paths = [path for name in ("best", "*-differences", "tuning-*") for path in reports.glob(f"of */tables/{name}.tex")]
    assert len(paths) > 3
    for path in paths:
        text = path.read_text()
        specifications = re.findall(r"begin{tabular}{(.*)}$", text, re.M)
        for kinds, (columns, rows) in zip(specifications, tabulars(text), strict=True):
            assert width_in_points(kinds, columns, rows) <= 178 / 25.4 * 72.27, path.name


def test_differences_follow_the_means_in_a_table_of_their_own(reports: Path) -> None:
    """All columns are there, each once, and a reference to the table finds the means."""
    text = (reports / "of generated/tables/best.tex").read_text()
    means, *others = [columns for columns, _ in tabulars(text)]
    assert {heading for group, heading in means if group} == {"mean"}
    assert all(heading in ("minus finetune", "p") for columns in others for group, heading in columns if group)
    assert len([1 for columns in others for group, heading in columns if heading == "p"]) == 2
    assert text.count(r"\label{table:") == 1 + len(others)
    assert re.findall(r"\\label{(.*?)}", text)[0].endswith(":best")
    of_means, *of_others = text.split(r"\end{table*}")
    assert "Mean [95" in of_means
    for explained in ("Minus finetune:", "p: two-sided", "excludes 0"):
        assert explained not in of_means
        assert "".join(of_others).count(explained) == 1


def test_the_paper_s_table_has_validation_and_test(reports: Path) -> None:
    ((columns, _), *_) = tabulars((reports / "of generated/tables/grid-published.tex").read_text())
    headings = [name for group, name in columns if group == metric_named("auc").latex]
    assert headings == ["validation", "test", "published", "diff."]


WHOSE = re.compile(r"(?<![\w-])(validation|test|training) (set|people|patients|split|instances?|AUC)\b", re.IGNORECASE)


@pytest.mark.parametrize("ending", ["tex", "md"])
def test_each_table_says_whose_its_numbers_are(reports: Path, ending: str) -> None:
    for path in reports.glob(f"of */tables/*.{ending}"):
        assert WHOSE.search(path.read_text()), path.name


@pytest.mark.parametrize("report", ["of generated", "of a launch"])
def test_each_caption_says_whose_its_numbers_are(reports: Path, report: str) -> None:
    page = (reports / report / "index.html").read_text()
    captions = [html.unescape(re.sub("<[^>]+>", "", it)) for it in re.findall("<figcaption>(.*?)</figcaption>", page)]
    assert len(captions) > 5
    assert [it for it in captions if not WHOSE.search(it)] == []


def test_each_95_percent_interval_is_said_to_be_unadjusted(reports: Path) -> None:
    for path in reports.glob("of */tables/*.md"):
        text = path.read_text()
        if "95 %" in text and not re.search(r"95 % interval of the t-test", text):
            assert "unadjusted" in text or path.stem == "claims", path.name


def test_a_figure_has_a_short_caption_and_the_label_of_its_study() -> None:
    caption = "Means over n runs, 95 % intervals. Frames: R[i][j] of the task. Metrics of the validation set."
    text = figure_to_latex("own-r", "Trained on by evaluated on", caption, "my study", full_width=True)
    comment, *lines = text.splitlines()
    assert comment.startswith("% Needs the package graphicx")
    assert lines == [
        r"\begin{figure}[tp]",
        r"\centering",
        r"\includegraphics[width=\linewidth]{own-r.pdf}",
        r"\caption{Trained on by evaluated on. Means over n runs, 95 \% intervals. Frames: R[i][j] of the task.}"
        r"\label{figure:my_study:own_r}",
        r"\end{figure}",
    ]
    own_width = figure_to_latex("own-r", "R", "Means.", "", full_width=False)
    assert r"\includegraphics{own-r.pdf}" in own_width
    wide = figure_to_latex("own-r", "R", "Means.", "", full_width=False, in_two_columns=True).splitlines()
    assert (wide[1], wide[-1]) == (r"\begin{figure*}[tp]", r"\end{figure*}")
    assert r"\caption{R. Means.}\label{figure:own_r}" in own_width


def long_table(rows: int) -> TextTable:
    cells = tuple((label_cell(f"run {number}"), label_cell(f"value {number}")) for number in range(rows))
    return TextTable("runs", "Runs", ("run", "validation set"), cells, 1, (1, LONG), ("A note.",))


def test_a_long_table_of_a_journal_is_several_floats_since_longtable_fails_in_two_columns() -> None:
    table = long_table(2 * LONG + 3)
    text = to_latex(table, "study", journal=True)
    assert "longtable" not in text
    floats = text.split(r"\end{table*}")[:-1]
    assert [len(rows) for _, rows in tabulars(text)] == [LONG, LONG, 3]
    shown = [row[0] for _, rows in tabulars(text) for row in rows]
    assert shown == [row[0].text for row in table.rows]  # each row once, in order
    assert re.findall(r"\\label{(.*?)}", text) == [f"table:study:runs{ending}" for ending in ("", "_2", "_3")]
    captions = [re.search(r"\\caption{(.*?)}\\label", it) for it in floats]
    assert [it and it[1] for it in captions] == [f"Runs ({number} of 3)." for number in (1, 2, 3)]
    assert r"\caption{Runs.}" in to_latex(long_table(LONG), journal=True), "one part has no number"
    assert ["A note." in it for it in floats] == [True, False, False]
    assert [it.count(r"\midrule") for it in floats] == [2, 2, 1]  # below the head, and after rows 1 and LONG
    assert to_latex(long_table(LONG), journal=True) == to_latex(long_table(LONG))


def test_a_long_table_of_one_column_says_that_it_fails_in_two() -> None:
    text = to_latex(long_table(LONG + 1))
    assert r"\begin{longtable}" in text
    assert "two columns" in text.splitlines()[1]


def test_latex_never_has_more_floats_waiting_than_it_keeps() -> None:
    text = to_latex(long_table(25 * LONG), journal=True)
    assert max(part.count(r"\begin{table*}") for part in text.split(r"\clearpage")) <= 18


def test_options_of_which_each_row_has_one_share_a_column() -> None:
    def latex_of(*rows: str) -> str:
        of_rows = [tuple(TextCell(DASH if text == "-" else text) for text in row.split()) for row in rows]
        header = ("configuration", "kd", "derpp_alpha", "n", "AUC")
        return to_latex(TextTable("t", "T", header, tuple(of_rows), 4, metric_headings=frozenset({"AUC"})))

    lines = latex_of("er_kd 0.5 - 5 0.7", "derpp - 1 5 0.8", "joint - - 5 0.9").splitlines()
    shown = [[as_text(cell) for cell in line.removesuffix(r" \\").split(" & ")] for line in lines if " & " in line]
    assert shown == [
        ["configuration", "option", "n", "AUC"],
        ["er_kd", "kd 0.5", "5", "0.7"],
        ["derpp", "derpp_alpha 1", "5", "0.8"],
        ["joint", "--", "5", "0.9"],
    ]
    assert "option" not in latex_of("er_kd 0.5 - 5 0.7", "both 0.5 1 5 0.8")
