"""Make the gallery: a compact store of runs, and from this store the pictures and docs/results/gallery.md.

python docs/gallery/gallery.py                   the pictures and the page
python docs/gallery/gallery.py collect RESULTS   copy the runs of the search spaces from RESULTS into store/
"""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from clops_sweep.analysis.claims.claim_runs import ContrastRuns, FinishedRuns
from clops_sweep.analysis.claims.run_measures import MEASURES, OF_TWO, RunTables
from clops_sweep.analysis.claims.verdicts import Evidence, Values, Verdict, claims_of_paper, decided, evidence_of
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.drawing.pictures import Picture, Sketch
from clops_sweep.analysis.figures.task_titles import TaskTitles
from clops_sweep.analysis.figures.variance import VarianceBySource, variance_by_source
from clops_sweep.analysis.figures.variance_figure import needed_in_words
from clops_sweep.analysis.formats import TextCell, TextTable, number, plural, result_text, to_markdown
from clops_sweep.analysis.report.claims_section import claims_text, counts_in_words, departures_in_words, notes_on_units
from clops_sweep.analysis.report.sections import CountedFiles, build_section
from clops_sweep.analysis.results import result_table
from clops_sweep.analysis.selection import shown_metrics
from clops_sweep.analysis.statistics import Replicate
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.config import BY_DIFFICULTY
from clops_sweep.experiment.metrics import MEASURES as PERFORMANCES
from clops_sweep.experiment.metrics import metrics_of
from clops_sweep.experiment.spaces.claims import Claim
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.planning.curriculum import orders_by_difficulty
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS, TableName
from clops_sweep.store.writing import commit

FOLDER = Path(__file__).parent
STORE, NOISE = FOLDER / "store", FOLDER / "noise.parquet"
DOCUMENT = FOLDER.parent / "results" / "gallery.md"
HEAD = """# Gallery: verdicts, figures and tables

`python docs/gallery/gallery.py` made this page from the runs in `docs/gallery/store`.
[Findings](../gallery.md) sums it up; [Claims](../claims.md#how-it-is-decided) defines the verdicts.
"""
FILES = (
    *("appendix_mitbih", "appendix_cinc2017", "appendix_ptbxl", "appendix_physionet2020", "appendix_synthetic"),
    "variance",
)

TITLES = {
    "mitbih": "MIT-BIH Arrhythmia Database",
    "cinc2017": "CinC Challenge 2017",
    "ptbxl": "PTB-XL",
    "physionet2020": "CPSC 2018, as in the Challenge 2020",
    "synthetic_paper": "Synthetic ECG, six tasks of the paper's size",
}
OF_GRID = ("heatmap-auc", "heatmap-bwt", "difference-auc", "difference-bwt")
AS_TABLES = (
    *("mc_samples", "acquisition_functions", "weighted_replay_class_il"),
    *("mir_acquisition_fraction", "mir_replay_ratio"),
)
SHOWN: dict[
    str, dict[str, tuple[str, ...]]
] = {  # data set to experiments (without the data set's name) to parts of their sections
    "mitbih": {
        "baselines_class_il": ("results", "curves", "forgetting"),
        "class_il_grid": OF_GRID,
        "storage_order": ("heatmap-auc", "heatmap-bwt"),
        "storage_function": ("heatmap-auc",),
        **dict.fromkeys(AS_TABLES, ("results",)),
        "task_order": ("results", "curves"),
        "beta_penalty": ("results", "s", "similarity"),
    },
    "cinc2017": {
        "baselines_class_il": ("results", "curves"),
        "class_il_grid": OF_GRID,
        "storage_order": ("heatmap-auc",),
        "storage_function": ("heatmap-auc",),
        **dict.fromkeys(AS_TABLES, ("results",)),
        "task_order": ("results",),
    },
    "ptbxl": {
        "baselines_time_il": ("results", "curves"),
        "weighted_replay_time_il": ("results",),
        "baselines_domain_il": ("results", "curves"),
    },
    "physionet2020": {"baselines_domain_il": ("results", "curves"), "weighted_replay_domain_il": ("results",)},
    "synthetic_paper": {
        "baselines_class_il": ("results", "curves"),
        "class_il_grid": OF_GRID,
    },
}
HEADINGS = {
    "baselines_class_il": "Methods, Class-IL",
    "baselines_time_il": "Methods, Time-IL",
    "baselines_domain_il": "Methods, Domain-IL",
    "class_il_grid": "Random storage and acquisition, by b and a",
    "storage_order": "Storage order: easiest or hardest first, by b and a",
    "storage_function": "Storage function: area under beta or under its square, by b and a",
    "mc_samples": "Number of Monte-Carlo samples, T",
    "acquisition_functions": "Acquisition functions",
    "weighted_replay_class_il": "Weighted replay losses, Class-IL",
    "weighted_replay_time_il": "Weighted replay losses, Time-IL",
    "weighted_replay_domain_il": "Weighted replay losses, Domain-IL",
    "mir_acquisition_fraction": "MIR: share of the buffer searched",
    "mir_replay_ratio": "MIR: replay ratio",
    "task_order": "Task orders",
    "beta_penalty": "Penalty on beta",
}
SCENARIOS = {"class_il": "Class-IL", "time_il": "Time-IL", "domain_il": "Domain-IL"}
_COLUMNS = {name: name for name in ("measure", "verdict", "difference", "level", "n")}
_COLUMNS |= {"matters": "smallest relevant difference", "paper": "paper"}
"""Columns of the table of claims on this page, with their names in the report."""

OF_FRAMES = "signal_to_noise_by_s"
_TABLES = {name: table for name, (table, _) in MEASURES.items()}
_TABLES |= {name: table for name, (table, _) in OF_TWO.items()}
MOST_BYTES = 200_000
"""Largest size of a picture file."""

DIGITS = {"runs": 4, "r_matrix": 4, "curves": 3, "instances": 4}
"""Decimals kept in each table; in `runs`, AUC metrics stay exact."""

ROUNDED = {
    f"{prefix}{name}" for measure in PERFORMANCES[1:] for name in metrics_of(measure) for prefix in ("", "test_")
}


@dataclass(frozen=True)
class Gallery:
    """A store and the search spaces shown on the page."""

    store: RunStore

    @cached_property
    def spaces(self) -> dict[str, list[SearchSpace]]:
        """Return the search spaces of each file, with task orders by difficulty resolved."""
        spaces = {file: load_spaces(shipped_space(file)) for file in FILES}
        rows = self.store.read("runs", columns=["dataset", "scenario", "split_seed", "data_hash"])
        hashes = rows.drop_duplicates().set_index(["dataset", "scenario", "split_seed"])["data_hash"].to_dict()
        configs = [request.config for of in spaces.values() for space in of for request in space.requests()]
        by_difficulty = [config for config in configs if config.task_order in BY_DIFFICULTY]
        found = orders_by_difficulty(
            by_difficulty, self.store, lambda it: hashes.get((it.dataset, it.scenario, it.split_seed))
        )
        return {
            file: [replace(space, resolve=lambda config: found.get(config) or config) for space in of]
            for file, of in spaces.items()
        }

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """Return the experiment of each search space, by its name."""
        spaces = [space for of in self.spaces.values() for space in of]
        return {it.name: it for it in collect(spaces, self.store.read("runs"))}

    def compared(self, name: str) -> Experiment:
        """Return an experiment on the patient splits and seeds common to all configurations, so that means compare."""
        experiment = self.experiments[name]
        complete = np.all(np.isfinite(experiment.by_replicate("auc")), axis=0)
        common = {it for it, has in zip(experiment.replicates, complete, strict=True) if has}
        places = zip(experiment.runs["split_seed"], experiment.runs["seed"], strict=True)
        return replace(experiment, runs=experiment.runs[[it in common for it in places]])

    @cached_property
    def verdicts(self) -> dict[str, list[Verdict]]:
        """Return the verdicts by data set."""
        finished, noise = self.finished, pd.read_parquet(NOISE).set_index("run_id")["correlation"]
        found = {}
        for dataset, runs in finished.about(claims_of_paper(), of_paper=True).items():
            values = Values(finished, runs)

            def evidence(of: ContrastRuns, claim: Claim, values: Values = values) -> Evidence:
                if of.contrast.measure != OF_FRAMES:
                    return values.evidence(of, claim)
                known = {}
                for it, pairs in of.pairs.items():
                    run_id, _ = pairs[0]
                    if run_id is not None and run_id in noise:
                        known[it] = noise[run_id]
                return evidence_of(of.contrast, claim.says, claim.matters, known, of.partitions)

            found[dataset] = decided([(it, [evidence(of, it.claim) for of in it.contrasts]) for it in runs])
        return found

    @cached_property
    def finished(self) -> FinishedRuns:
        """Return the runs that decide claims."""
        return FinishedRuns(list(self.experiments.values()), self.store)

    @property
    def variance(self) -> VarianceBySource:
        """Return the variance components of average AUC."""
        return variance_by_source(self.experiments["variance"])


def collect_from(results: Path) -> None:
    """Copy the runs of the search spaces, with the tables that claims and pictures need, into `STORE`."""
    full = Gallery(RunStore(results))
    finished = full.finished
    everything = set(finished.runs.index)
    needed: dict[TableName, set[str]] = {
        "runs": everything,
        "r_matrix": everything,
        "curves": set(),
        "instances": set(),
    }
    noisy: set[str] = set()
    for of in (of for found in finished.about(claims_of_paper()).values() for runs in found for of in runs.contrasts):
        ids = {run_id for pairs in of.pairs.values() for pair in pairs for run_id in pair if run_id}
        for measure in filter(None, (of.contrast.measure, of.contrast.of_theirs)):
            needed[_TABLES.get(measure, "runs")] |= ids
            noisy |= ids if measure == OF_FRAMES else set()
    for dataset, experiments in SHOWN.items():
        for name, parts in experiments.items():
            if "curves" in parts:
                runs = full.experiments[f"{dataset}_{name}"].runs
                needed["curves"] |= set(runs.loc[runs["status"] == "finished", "run_id"])
    _noise(full, sorted(noisy)).to_parquet(NOISE, index=False)
    shutil.rmtree(STORE, ignore_errors=True)
    compact = RunStore(STORE)
    compact.open_for_writing()
    tables: dict[TableName, list[pa.Table]] = {}
    for table in EVERY_RUN:
        content = full.store.table(table, sorted(needed[table])).select(SCHEMAS[table].names)
        shortened = _shortened(table, content)
        if table == "instances":
            shortened = _beta_alone(shortened, list(full.finished.runs.query("beta_penalty == 0").index))
        tables[table] = [shortened]
    with compact.locked():
        commit(compact.parts, [], SCHEMAS, tables)


def _noise(full: Gallery, run_ids: Sequence[str]) -> pd.DataFrame:
    """Return the rank correlation of s with the signal-to-noise ratio by run; it needs prepared frames."""
    _, measure = MEASURES[OF_FRAMES]
    found = []
    for record in full.store.read("runs", run_ids).to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        config = config_from_row(row)
        frames = open_frames(config.dataset, **config.data_key.view)
        found.append((row["run_id"], measure(RunTables(row, full.store.read("instances", [row["run_id"]]), frames))))
    return pd.DataFrame(found, columns=["run_id", "correlation"])


def _shortened(table: TableName, content: pa.Table) -> pa.Table:
    """Return a table with rounded numbers; of R and curves, only the AUC is kept."""
    for position, field in enumerate(content.schema):
        left_out = table in ("r_matrix", "curves") and field.name in ("accuracy", "balanced_accuracy", "f1", "loss")
        if left_out or field.name in ("host", "patient", "times_replayed", "beta_trajectory"):
            content = content.set_column(position, field, pa.nulls(len(content), field.type))
        elif field.type == pa.float64() and (table != "runs" or field.name in ROUNDED):
            content = content.set_column(position, field, pc.round(content[field.name], DIGITS[table]))
    return content


def _beta_alone(instances: pa.Table, run_ids: Sequence[str]) -> pa.Table:
    """Keep only beta for runs without its penalty: their claims need nothing else."""
    without = pc.is_in(instances["run_id"], pa.array(list(run_ids), pa.string()))
    for position, field in enumerate(instances.schema):
        if field.name not in ("run_id", "task", "beta", "beta_trajectory"):
            kept = pc.if_else(without, pa.scalar(None, field.type), instances[field.name])
            instances = instances.set_column(position, field, kept)
    return instances


def sketches(gallery: Gallery) -> Iterator[Sketch]:
    """Yield the pictures of `SHOWN`, which are not drawn yet."""
    wanted = {f"{dataset}_{name}": parts for dataset, of in SHOWN.items() for name, parts in of.items()}
    for name, parts in {**wanted, "variance": ("variance",)}.items():
        shown = [part for part in parts if part != "results"]
        if shown:
            files = CountedFiles()  # draws nothing by itself
            experiment = gallery.compared(name)
            build_section(experiment, [], gallery.store, name, None, [], TaskTitles([]), apart=[], files=files)
            by_name = {sketch.name: sketch for sketch in files.waiting}
            yield from (by_name[f"{name}-{part}"] for part in shown)


def markdown(picture: Picture) -> str:
    """Return the Markdown of a picture and its caption."""
    return f"![{picture.alt}](../gallery/{picture.name}.png)\n\n{caption(picture)}\n"


def caption(of: Sketch | Picture) -> str:
    """Return title and caption as Markdown."""
    return f"*{of.title}. {of.caption}*"


def small(png: bytes) -> bytes:
    """Return the picture in 256 colours, a third of the bytes, and with fewer pixels if it is still too large."""
    whole = picture = Image.open(io.BytesIO(png)).convert("RGB").reduce(2)  # screen resolution
    while True:
        target = io.BytesIO()
        picture.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(target, "PNG", optimize=True)
        if target.tell() < MOST_BYTES:
            return target.getvalue()
        picture = whole.resize((picture.width * 9 // 10, picture.height * 9 // 10), Image.Resampling.LANCZOS)


def page(gallery: Gallery, drawn: dict[str, str]) -> Iterator[str]:
    """Yield the page; `drawn` has the Markdown of each picture by name."""
    yield HEAD
    yield "## Search spaces and runs\n"
    yield _rows_alone(_runs_table(gallery))
    yield "## Variance by source\n"
    sizes = ", ".join(f"{size} of {name}" for name, size in gallery.variance.sizes.items())
    yield _wrapped(f"{plural(gallery.variance.runs, 'run')}: {sizes}. Standard deviation of average AUC by source:")
    yield _rows_alone(_variance_table(gallery.variance))
    yield _wrapped(needed_in_words(gallery.variance))
    yield drawn.get("variance-variance", "")
    for dataset, experiments in SHOWN.items():
        yield f"## {TITLES[dataset]}\n"
        found = gallery.verdicts[dataset]
        for scenario in dict.fromkeys(verdict.claim.scenario for verdict in found):
            yield from claims_of([verdict for verdict in found if verdict.claim.scenario == scenario])
        for name, parts in experiments.items():
            experiment = gallery.compared(f"{dataset}_{name}")
            yield f"### {HEADINGS[name]}\n"
            yield f"{_replicates(experiment)}.\n"
            yield from (drawn.get(f"{experiment.name}-{part}", "") for part in parts)
            if "results" in parts:
                yield "<details><summary>Table</summary>\n"
                yield _results(experiment)
                yield "</details>\n"


def claims_of(found: Sequence[Verdict]) -> Iterator[str]:
    """Yield the verdicts on a data set in one scenario, then claims without runs, grouped by the missing runs."""
    shown = [verdict for verdict in found if verdict.weakest.n]
    table = claims_text(shown)
    everywhere = [it for it in departures_in_words(shown[0]) if all(it in departures_in_words(v) for v in shown)]
    rows = tuple(
        (
            _with_departures(verdict, cells[0], everywhere),
            *(cells[table.header.index(name)] for name in _COLUMNS.values()),
        )
        for verdict, cells in zip(shown, table.rows, strict=True)
    )
    yield f"### Claims, {SCENARIOS[found[0].claim.scenario]}: {counts_in_words(shown)}\n"
    yield "<details><summary>Every verdict</summary>\n"
    if everywhere:
        yield _wrapped(f"All runs with {', '.join(everywhere)}.")
    yield _rows_alone(TextTable("claims", "", ("claim", *_COLUMNS), rows, 2))
    yield _wrapped(" ".join(notes_on_units(shown)))
    lacking: dict[str, list[str]] = {}
    for verdict in found:
        if not verdict.weakest.n:
            lacking.setdefault(verdict.missing, []).append(verdict.claim.key)
    for missing, keys in lacking.items():
        yield _wrapped(f"Undecided, {missing}: {', '.join(f'`{key}`' for key in keys)}.")
    yield "</details>\n"


def _with_departures(verdict: Verdict, claim: TextCell, but: Sequence[str]) -> TextCell:
    return TextCell("; ".join([claim.text, *(it for it in departures_in_words(verdict) if it not in but)]))


def _results(experiment: Experiment) -> str:
    table = result_text(result_table(experiment), experiment.name, "", (), shown_metrics([experiment]))
    return _rows_alone(table)


def _wrapped(text: str) -> str:
    """Return a paragraph in lines of 100 characters."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def _rows_alone(table: TextTable) -> str:
    """Return a table as Markdown without its title line."""
    return to_markdown(table).partition("\n\n")[2]


def _replicates(experiment: Experiment) -> str:
    splits = {split for split, _ in experiment.replicates}
    return f"{plural(len(splits), 'patient split')}, {_on_each(experiment.replicates)}"


def _on_each(replicates: Iterable[Replicate]) -> str:
    """Return the number of seeds per split in words."""
    seeds = Counter(split for split, _ in set(replicates))
    splits = sorted(Counter(seeds.values()).items(), reverse=True)
    if len(splits) == 1:
        return f"{plural(splits[0][0], 'seed')} on each"
    return ", ".join(f"{plural(count, 'seed')} on {of}" for count, of in splits)


def _runs_table(gallery: Gallery) -> TextTable:
    """Return the runs of each file and scenario as a table."""
    rows = []
    for file, spaces in gallery.spaces.items():
        of_scenario: dict[str, list[Experiment]] = {}
        for space in spaces:
            of_scenario.setdefault(space.base.scenario, []).append(gallery.experiments[space.name])
        for scenario, experiments in of_scenario.items():
            runs = {row["run_id"]: row for it in experiments for row in it.runs.to_dict("records")}
            done = [row for row in runs.values() if row["status"] == "finished"]
            places = {(row["split_seed"], row["seed"]) for row in done}
            splits = plural(len({split for split, _ in places}), "split")
            texts = (scenario, splits, _on_each(places), f"{len(done):,}")
            minutes = sum(row["seconds"] for row in done) / 60
            rows.append(tuple(map(TextCell, (f"{file}.py", *texts, f"{minutes:.0f}"))))
    header = ("search space", "scenario", "patient splits", "seeds", "runs", "minutes")
    return TextTable("runs", "", header, tuple(rows), 4)


def _variance_table(record: VarianceBySource) -> TextTable:
    deviations = {name: max(0.0, variance) ** 0.5 for name, variance in record.by_source.items()}
    rows = tuple((TextCell(name), TextCell(number(value))) for name, value in deviations.items())
    return TextTable("variance", "", ("source", "standard deviation"), rows)


def main(arguments: Sequence[str]) -> None:
    """Run the command."""
    match arguments:
        case ["collect", results]:
            collect_from(Path(results))
        case []:
            gallery = Gallery(RunStore(STORE))
            drawn = [sketch.drawn() for sketch in sketches(gallery)]
            text = "\n".join(part for part in page(gallery, {it.name: markdown(it) for it in drawn}) if part)
            for old in FOLDER.glob("*.png"):
                old.unlink()
            for picture in drawn:
                (FOLDER / f"{picture.name}.png").write_bytes(small(picture.png))
            DOCUMENT.write_text(text)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
