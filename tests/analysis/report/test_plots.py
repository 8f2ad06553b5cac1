"""One call a figure, on a store of generated numbers."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from clops_sweep import RunConfig, SearchSpace, analysis, write_report
from clops_sweep.analysis.drawing.svg import as_svg
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore
from tests.helpers.at_night import mostly_at_night

OF_GRIDS = ["plot_heatmap", "plot_methods", "plot_metrics", "plot_cost_frontier", "plot_importance"]
BY_TASK = ["plot_learning_curves", "plot_r_matrices", "plot_forgetting"]


@pytest.mark.parametrize("name", OF_GRIDS)
def test_a_space_and_a_store_are_enough_for_a_figure(name: str, spaces: list[SearchSpace], store: RunStore) -> None:
    figure = getattr(analysis, name)(spaces[0], store.files.folder)
    assert figure.axes
    assert not plt.get_fignums()  # a notebook shows a figure that pyplot holds twice


def titles_of(figure: Figure) -> list[str]:
    """Return the titles of panels, without the number of runs."""
    titles = (axes.get_title(loc="left") or axes.get_title() for axes in figure.axes)
    return [title.partition("(n =")[0].strip() for title in titles if title]


@pytest.mark.parametrize("name", mostly_at_night(BY_TASK, "plot_r_matrices".__eq__))
def test_of_many_configurations_a_warning_names_those_that_are_drawn(
    name: str, spaces: list[SearchSpace], store: RunStore
) -> None:
    plot = getattr(analysis, name)
    with pytest.warns(UserWarning, match="the figure shows 2 of 10 configurations") as warned:
        two = plot(spaces[0], store.files.folder)
    assert warned[0].filename == __file__
    said = str(warned[0].message)
    assert re.search(r"settings \(CLOPS, b = 1, a = 0\.5; Random storage, b = 1, a = 0\.5\); where= chooses", said)
    example = re.search(r"such as where='(storage_fraction == [\d.]+)'", said)
    assert example is not None
    chosen = plot(spaces[0], store.files.folder, where=example[1])
    assert len(chosen.axes) > len(two.axes)
    one = plot(spaces[0], store.files.folder, where="variant == 'CLOPS' and storage_fraction == acquisition_fraction")
    assert titles_of(one) == ["CLOPS, b = 0.5, a = 0.5"]
    with pytest.raises(UsageError, match="where = 'storage_fraction > 1': no configuration of 'grid'"):
        plot(spaces[0], store.files.folder, where="storage_fraction > 1")
    with pytest.raises(UsageError, match="storage_fractoin"):
        plot(spaces[0], store.files.folder, where="storage_fractoin == 1")


def test_a_few_configurations_are_all_drawn(store: RunStore) -> None:
    """Without a warning, which tests treat as an error."""
    axes = {"storage_fraction": [0.1, 0.5, 1.0]}
    space = SearchSpace("few", RunConfig(epochs_per_task=5, acquisition_fraction=0.5), axes, seeds=range(3))
    figure = analysis.plot_learning_curves(space, store.files.folder)
    assert titles_of(figure) == ["b = 0.1", "b = 0.5", "b = 1"]


@pytest.mark.nightly
def test_methods_have_the_means_and_intervals_of_the_report(generated: ModuleType, tmp_path: Path) -> None:
    methods = {"er": {"strategy": "er"}, "mine": {"strategy": "ewc"}, "finetune": {"strategy": "finetune"}}
    space = SearchSpace("methods", RunConfig(), {"method": methods, "split_seed": range(4)}, seeds=range(1))
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space])
    report = write_report(space, tmp_path / "results", folder=tmp_path / "report")
    table = pd.read_csv(next(it for it in report.tables if it.name == "best.csv"))
    figure = analysis.plot_methods(space, tmp_path / "results")
    assert [axes.get_title() for axes in figure.axes] == ["test AUC (higher is better)", "test BWT (higher is better)"]
    of_metric = table[table["metric"] == "test_auc"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == of_metric["configuration"].tolist()
    lines = [line.get_xdata().tolist() for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert np.array(lines) == pytest.approx(of_metric[["low", "high"]].to_numpy())
    one = analysis.plot_methods(space, tmp_path / "results", "auc")
    assert [axes.get_title() for axes in one.axes] == ["validation AUC (higher is better)"]
    with pytest.raises(UsageError, match="metric 'acuracy': not known"):
        analysis.plot_methods(space, tmp_path / "results", ["acuracy"])
    RunStore(tmp_path / "empty").open_for_writing()
    with pytest.raises(UsageError, match="'methods' has no finished run with a score yet"):
        analysis.plot_methods(space, tmp_path / "empty")


def test_a_single_configuration_has_the_name_of_its_space(generated: ModuleType, tmp_path: Path) -> None:
    """A panel of the space "er, my way" had the number of runs as its only title."""
    space = SearchSpace("er, my way", RunConfig(strategy="er"), seeds=range(2))
    generated.write_generated_runs(RunStore(tmp_path), [space])
    for plot in (analysis.plot_learning_curves, analysis.plot_r_matrices, analysis.plot_forgetting):
        assert "er, my way" in titles_of(plot(space, tmp_path))


def test_a_heatmap_has_the_metric_and_the_axes_that_are_asked_for(spaces: list[SearchSpace], store: RunStore) -> None:
    folder = store.files.folder
    axes = ("acquisition_fraction", "storage_fraction")
    figure = analysis.plot_heatmap(spaces[0], folder, "bwt", axes=axes)
    in_two_steps = analysis.draw_heatmap(analysis.heatmap(analysis.open_sweep(spaces[0], folder)[0], "bwt", axes))
    assert as_svg(figure, "a", "b") == as_svg(in_two_steps, "a", "b")
    assert as_svg(figure, "a", "b") != as_svg(analysis.plot_heatmap(spaces[0], folder, "auc", axes=axes), "a", "b")


def test_curves_of_an_unknown_metric(spaces: list[SearchSpace], store: RunStore) -> None:
    with pytest.raises(UsageError, match="metric 'acuracy': not known"):
        analysis.plot_learning_curves(spaces[0], store.files.folder, "acuracy")


def test_a_figure_shows_one_space_of_several(store: RunStore, tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        "from clops_sweep import RunConfig, SearchSpace\n"
        "base = RunConfig(epochs_per_task=5)\n"
        "SPACE = [SearchSpace('grid', base, seeds=range(3)),\n"
        "    SearchSpace('fine-tuning', base.replace(strategy='finetune'), seeds=range(3))]\n"
    )
    with pytest.raises(UsageError, match="name: expected one of grid, fine-tuning; a figure shows one"):
        analysis.plot_forgetting(file, store.files.folder)
    assert analysis.plot_forgetting(file, store.files.folder, name="fine-tuning").axes
    with pytest.raises(UsageError, match="name = 'third': no such search space; there are grid, fine-tuning"):
        analysis.plot_forgetting(file, store.files.folder, name="third")


def test_what_cannot_be_drawn_is_said(spaces: list[SearchSpace], store: RunStore) -> None:
    with pytest.raises(UsageError, match="'grid' has no trial of a search"):
        analysis.plot_slices(spaces[0], store.files.folder)
    with pytest.raises(UsageError, match="cost = 'hours': not known; known: seconds, replayed"):
        analysis.plot_cost_frontier(spaces[0], store.files.folder, "hours")
    never_run = SearchSpace("never", RunConfig(epochs_per_task=6), seeds=range(1))
    with pytest.raises(UsageError, match="'never': no finished run has recorded what this figure shows"):
        analysis.plot_r_matrices(never_run, store.files.folder)


def test_a_report_is_written_from_python_and_shown_in_a_notebook(
    spaces: list[SearchSpace], store: RunStore, tmp_path: Path, unpainted: None
) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / ".clops-sweep-report").touch()
    (folder / ".drawn-from").write_text("digest of an earlier report")
    written = write_report(spaces[0], str(store.files.folder), folder, metrics="bwt")
    assert written.index == folder / "index.html"
    assert not (folder / ".drawn-from").exists()
    page = written._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert unescape(page.split('"')[1]) == written.index.read_text()
    with pytest.raises(UsageError, match="style = 'paper': expected 'screen' or 'journal'"):
        write_report(spaces[0], str(store.files.folder), folder, style="paper")


@pytest.mark.parametrize("name", [name for name in dir(analysis) if name.startswith("plot_")])
def test_a_misspelt_argument_is_one_sentence(name: str, store: RunStore) -> None:
    plot = getattr(analysis, name)
    with pytest.raises(UsageError, match=rf"^{name}: no argument 'reslts' \(did you mean 'results'\?\)$"):
        plot("space.py", reslts=str(store.uri))


def test_a_misspelt_metric(spaces: list[SearchSpace]) -> None:
    with pytest.raises(TypeError, match=r"^plot_heatmap: no argument 'metrc' \(did you mean 'metric'\?\)$"):
        analysis.plot_heatmap(spaces[0], metrc="auc")  # type: ignore[call-arg]
