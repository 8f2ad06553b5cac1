"""Numbers, set-up, order and alternative texts of a report's page."""

from __future__ import annotations

import re
from pathlib import Path

from clops_sweep.analysis.drawing.pictures import sketch
from clops_sweep.analysis.drawing.values_in_words import NamedValues, values_in_words
from clops_sweep.analysis.figures.best_figure import BestMeans, draw_best
from clops_sweep.analysis.formats import TextTable
from clops_sweep.analysis.report.page import RunEntry, RunList, Section, no_links, render_page
from clops_sweep.analysis.report.sections import CountedFiles, with_pictures
from clops_sweep.analysis.report.write import ReportPaths
from clops_sweep.analysis.statistics import PairedDifference


def test_figures_and_tables_are_numbered_in_the_order_of_the_page(report: ReportPaths) -> None:
    text = report.index.read_text("utf-8")
    for kind in ("Figure", "Table"):
        numbers = [int(number) for number in re.findall(rf"<strong>{kind} (\d+): ", text)]
        assert len(numbers) > 3
        assert numbers == list(range(1, len(numbers) + 1))
    table = re.search(r'Values: <a href="#grid-results">(Table \d+)</a>', text)
    assert table is not None
    assert f"<strong>{table[1]}: Results of grid." in text


def test_the_page_begins_with_methods_with_intervals_and_the_set_up(report: ReportPaths) -> None:
    text = report.index.read_text("utf-8")
    assert '<tr><th scope="row">batch size</th><td>' in text
    assert '<th scope="row">what differs between runs</th>' in text
    places = [text.index(f'<figure id="{name}"') for name in ("methods-with-intervals", "best", "setup")]
    assert places == sorted(places)
    assert places[-1] < text.index('<section id="')


def test_variants_of_bwt_are_folded(report: ReportPaths) -> None:
    parts = report.index.read_text("utf-8").split('<details class="more">')
    folded = "".join(part.split("</details>")[0] for part in parts[1:])
    assert 'id="grid-heatmap-bwt_t"' in folded
    assert "variants-of-bwt" in folded, "those of strategies"
    assert "grid-heatmap-bwt_lambda" in folded


def test_alternative_texts_state_values(report: ReportPaths) -> None:
    text = report.index.read_text("utf-8")
    for figure in ("grid-heatmap-auc", "grid-curves", "grid-forgetting"):
        part = text.split(f'<figure id="{figure}"')[1].split("</figure>")[0]
        (said,) = re.findall(r'role="img" aria-label="([^"]*)"|aria-label="([^"]{60,})"', part)[:1]
        assert re.search(r"best|worst|: .* -?\d\.\d", "".join(said)), figure


def test_values_in_words_name_all_of_a_few_and_the_ends_of_many() -> None:
    few = NamedValues("AUC", [("ER", 0.9), ("EWC", 0.7), ("none", float("nan"))], "higher")
    assert values_in_words(few) == "AUC: ER 0.9; EWC 0.7. Best: ER; worst: EWC."
    many = NamedValues("loss", [(f"t{n}", n) for n in range(20)], "lower")
    assert values_in_words(many) == "loss, 20 values: best t0 0; t1 1; t2 2; worst t17 17; t18 18; t19 19."


def test_drawing_is_counted() -> None:
    record = BestMeans(("one",), {"auc": (PairedDifference(0.9, 0.8, 1.0, 0.01, 3),)})
    files = CountedFiles()
    section = Section("s", "S", "", (), (files.add_picture(sketch(draw_best, record, "a", "A", "")),), (), (), ())
    assert section.pictures[0].svg == ""
    files.add_picture(sketch(draw_best, record, "b", "B", ""))
    seen: list[tuple[int, int]] = []
    pictures = files.draw_all(lambda number, count: seen.append((number, count)))
    assert seen == [(1, 2), (2, 2)]
    assert with_pictures(section, pictures).pictures[0].svg.startswith("<svg")
    assert "Average AUC: one 0.9." in pictures["a"].alt
    assert {"a.pdf", "b.png"} <= set(files.figures)


def test_labels_and_captions_of_latex_are_short(report: ReportPaths) -> None:
    path = next(path for path in report.tables if path.name == "grid-results.tex")
    text = Path(path).read_text("utf-8")
    assert r"\caption{Results of grid (1 of 2).}\label{table:grid:grid_results}" in text
    assert "\\footnotesize" in text.split(r"\end{tabular}")[1]


def test_commands_are_in_one_section_at_the_end() -> None:
    run = RunList("s-runs-0", "er", "1", (RunEntry("seed 0", "ab12"),))
    section = Section("s", "S", "", (), (), (), (), (run,))
    setup = no_links(TextTable("setup", "Set-up", (), ()), ())
    commands = [("Compute missing runs", "clops-sweep 'my <space>.py'")]
    text = render_page("T", ["Best: er."], None, [section], [], None, "results", setup, (), commands=commands)
    assert "<code" not in text.split("<main>")[0]
    last = text.rpartition("<section id=")[2]
    assert last.startswith('"reproduce">')
    words = "<span>clops-sweep</span> <span>&#39;my</span> <span>&lt;space&gt;.py&#39;</span>"
    assert f'<dt>Compute missing runs</dt><dd><code class="command">{words}</code></dd>' in last
    assert "<span>clops-sweep</span> <span>rerun</span> <span>ab12</span>" in last


def test_sections_of_tuning_are_folded_before_those_of_results() -> None:
    def folded(results: int, tuning: int) -> list[bool]:
        sections = [Section(f"r{n}", f"r{n}", "", (), (), (), (), ()) for n in range(results)]
        sections += [Section(f"t{n}", f"t{n}", "", (), (), (), (), (), of_tuning=True) for n in range(tuning)]
        setup = no_links(TextTable("setup", "Set-up", (), ()), ())
        text = render_page("T", [], None, sections, [], None, "results", setup, ())
        return ['<details class="experiment">' in text.split(f'<section id="{it.anchor}">')[1][:60] for it in sections]

    assert folded(2, 3) == [False] * 5
    assert folded(2, 4) == [False, False, True, True, True, True]
    assert folded(6, 1) == [True] * 7


def test_a_panel_has_the_configurations_of_the_search_spaces_that_show_its_measure() -> None:
    mean = PairedDifference(0.9, 0.8, 1.0, 0.01, 3)
    means = {"test_balanced_accuracy": (mean, mean, None), "test_auc": (None, None, mean)}
    figure = draw_best(BestMeans(("activities: er", "activities: finetune", "sites: er"), means))
    panels = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes]
    assert [len(names) for names in panels] == [2, 1]
    assert panels[1][0].split() == ["sites:", "er"]
