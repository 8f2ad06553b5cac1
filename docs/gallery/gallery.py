"""The gallery: from a store to a compact one, and from that alone to the pictures, the tables and docs/gallery.md.

python docs/gallery/gallery.py                   pictures, and all of docs/gallery.md behind its first part
python docs/gallery/gallery.py collect RESULTS   what the search spaces ask for and RESULTS has, into store/
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from clops_sweep.analysis.claim_runs import ContrastRuns, FinishedRuns
from clops_sweep.analysis.claims import CLAIMS, Claim
from clops_sweep.analysis.claims_section import claims_text, counts_in_words, departures_in_words
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.formats import TextCell, TextTable, number, plural, result_text, to_markdown
from clops_sweep.analysis.page import Picture
from clops_sweep.analysis.results import result_table
from clops_sweep.analysis.run_measures import MEASURES, OF_TWO, RunTables
from clops_sweep.analysis.sections import SectionFiles, build_section
from clops_sweep.analysis.selection import shown_metrics
from clops_sweep.analysis.task_titles import TaskTitles
from clops_sweep.analysis.variance import VarianceBySource, variance_by_source
from clops_sweep.analysis.variance_figure import needed_in_words
from clops_sweep.analysis.verdicts import Evidence, Values, Verdict, decided, evidence_of
from clops_sweep.data.prepare import open_frames
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.search_space import SearchSpace, load_spaces, shipped_space
from clops_sweep.planning.curriculum import BY_DIFFICULTY, orders_by_difficulty
from clops_sweep.store.parts import compacted
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, TableName

FOLDER = Path(__file__).parent
STORE, NOISE = FOLDER / "store", FOLDER / "noise.parquet"
DOCUMENT, HEADING = FOLDER.parent / "gallery.md", "## What was run\n"
FILES = ("appendix_mitbih", "appendix_cinc2017", "appendix_ptbxl", "appendix_physionet2020", "variance")

TITLES = {
    "mitbih": "MIT-BIH Arrhythmia Database",
    "cinc2017": "CinC Challenge 2017",
    "ptbxl": "PTB-XL",
    "physionet2020": "CPSC 2018, as in the Challenge 2020",
}
SHOWN = {  # by data set: experiments, without its name, with the parts of their sections
    "mitbih": {
        "baselines_class_il": ("results", "curves", "forgetting"),
        "class_il_grid": ("heatmap-auc", "heatmap-bwt", "difference-auc", "difference-bwt"),
        "storage_order": ("heatmap-auc", "heatmap-bwt"),
        "storage_function": ("heatmap-auc",),
        "mc_samples": ("results",),
        "acquisition_functions": ("results",),
        "weighted_replay_class_il": ("results",),
        "mir_acquisition_fraction": ("results",),
        "mir_replay_ratio": ("results",),
        "task_order": ("results", "curves"),
        "beta_penalty": ("s", "similarity"),
    },
    "cinc2017": {"baselines_class_il": ("results", "curves"), "class_il_grid": ("heatmap-auc", "difference-auc")},
    "ptbxl": {
        "baselines_time_il": ("results", "curves"),
        "weighted_replay_time_il": ("results",),
        "baselines_domain_il": ("results", "curves"),
    },
    "physionet2020": {"baselines_domain_il": ("results", "curves"), "weighted_replay_domain_il": ("results",)},
}
_COLUMNS = ("verdict", "difference", "n", "matters", "paper")
OF_FRAMES = "signal_to_noise_by_s"
_TABLES: dict[str, TableName] = {name: table for name, (table, _) in (MEASURES | OF_TWO).items()}
DIGITS = {"r_matrix": 5, "curves": 4, "instances": 4}
"""Decimals that are kept of the other tables; `runs` is kept as it is."""


@dataclass(frozen=True)
class Gallery:
    """A store and the search spaces that are shown of it, by their files."""

    store: RunStore

    @cached_property
    def spaces(self) -> dict[str, list[SearchSpace]]:
        """As the files have them, orders of tasks by difficulty found out."""
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
        """By the names of their search spaces."""
        spaces = [space for of in self.spaces.values() for space in of]
        return {it.name: it for it in collect(spaces, self.store.read("runs"))}

    @cached_property
    def verdicts(self) -> dict[str, list[Verdict]]:
        """By data set."""
        finished, noise = self.finished, pd.read_parquet(NOISE).set_index("run_id")["correlation"]
        scenarios: dict[str, list[str]] = {}
        for dataset, scenario in finished.data:
            scenarios.setdefault(dataset, []).append(scenario)
        found = {}
        for dataset, present in scenarios.items():
            about = [it for it in CLAIMS if it.scenario in present and it.dataset in (None, dataset)]
            runs = [finished.of(claim, dataset) for claim in about]
            values = Values(finished, runs)

            def evidence(of: ContrastRuns, claim: Claim, values: Values = values) -> Evidence:
                if of.contrast.measure != OF_FRAMES:
                    return values.evidence(of, claim)
                known = {it: noise[pairs[0][0]] for it, pairs in of.pairs.items() if pairs[0][0] in noise}
                return evidence_of(of.contrast, claim.says, claim.matters, known)

            found[dataset] = decided([(it, [evidence(of, it.claim) for of in it.contrasts]) for it in runs])
        return found

    @cached_property
    def finished(self) -> FinishedRuns:
        """The runs that claims are about."""
        return FinishedRuns(list(self.experiments.values()), self.store)

    @property
    def variance(self) -> VarianceBySource:
        """Of average AUC."""
        return variance_by_source(self.experiments["variance"])


def collect_from(results: Path) -> None:
    """Puts what the search spaces ask for, and what the claims and pictures take of it, into `STORE`."""
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
    for dataset, scenario in finished.data:
        for claim in CLAIMS:
            if claim.scenario == scenario:
                for of in finished.of(claim, dataset).contrasts:
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
    for table in EVERY_RUN:
        content = full.store.table(table, sorted(needed[table])).select(compact.parts[table].schema.names)
        held = pc.unique(content["run_id"]).to_pylist()
        compact.parts[table].write_compacted(compacted(held), _shortened(table, content), held)


def _noise(full: Gallery, run_ids: Sequence[str]) -> pd.DataFrame:
    """The one measure that takes the prepared frames: by run, how s goes with the signal-to-noise ratio."""
    _, measure = MEASURES[OF_FRAMES]
    found = []
    for row in full.store.read("runs", run_ids).to_dict("records"):
        config = config_from_row(row)
        frames = open_frames(config.dataset, **config.data_key.view)
        found.append((row["run_id"], measure(RunTables(row, full.store.read("instances", [row["run_id"]]), frames))))
    return pd.DataFrame(found, columns=["run_id", "correlation"])


def _shortened(table: TableName, content: pa.Table) -> pa.Table:
    """What is shown and claimed of a table: numbers rounded, and of R and curves the AUC alone."""
    for position, field in enumerate(content.schema):
        left_out = table in ("r_matrix", "curves") and field.name in ("accuracy", "balanced_accuracy", "f1", "loss")
        if left_out or field.name in ("host", "patient", "beta_trajectory"):
            content = content.set_column(position, field, pa.nulls(len(content), field.type))
        elif table in DIGITS and field.type == pa.float64():
            content = content.set_column(position, field, pc.round(content[field.name], DIGITS[table]))
    return content


def pictures(gallery: Gallery) -> Iterator[tuple[str, Picture]]:
    """What `SHOWN` names, with the name of its experiment."""
    wanted = {f"{dataset}_{name}": parts for dataset, of in SHOWN.items() for name, parts in of.items()}
    for name, parts in {**wanted, "variance": ("variance",)}.items():
        if set(parts) - {"results"}:
            experiment = gallery.experiments[name]
            section = build_section(experiment, [], gallery.store, name, None, SectionFiles(), [], TaskTitles([]))
            drawn = {it.name.removeprefix(f"{name}-"): it for it in (*section.pictures, *section.more_pictures)}
            yield from ((name, drawn[part]) for part in parts if part in drawn)


def small(png: bytes) -> bytes:
    """The same picture in 128 colours: a quarter of the bytes."""
    target = io.BytesIO()
    whole = Image.open(io.BytesIO(png)).convert("RGB")
    whole.quantize(128, dither=Image.Dither.NONE).save(target, "PNG", optimize=True)
    return target.getvalue()


def page(gallery: Gallery, drawn: dict[str, str]) -> Iterator[str]:
    """The document behind its first part; `drawn` has the Markdown of each picture, by its name."""
    yield to_markdown(_runs_table(gallery))
    yield "## What a seed is worth\n"
    yield to_markdown(_variance_table(gallery.variance))
    yield needed_in_words(gallery.variance) + "\n"
    yield drawn.get("variance-variance", "")
    for dataset, experiments in SHOWN.items():
        yield f"## {TITLES[dataset]}\n"
        yield from claims_of(gallery.verdicts.get(dataset, []))
        for name, parts in experiments.items():
            experiment = gallery.experiments[f"{dataset}_{name}"]
            for part in parts:
                yield drawn.get(f"{experiment.name}-{part}", "") if part != "results" else _results(experiment)


def claims_of(found: Sequence[Verdict]) -> Iterator[str]:
    """The verdicts on a data set, and the claims that have no runs there by what is missing."""
    shown = [verdict for verdict in found if verdict.weakest.n]
    table = claims_text(shown)
    rows = tuple(
        (_with_departures(verdict, cells[0]), *(cells[table.header.index(name)] for name in _COLUMNS))
        for verdict, cells in zip(shown, table.rows, strict=True)
    )
    yield to_markdown(TextTable("claims", f"Claims: {counts_in_words(shown)}", ("claim", *_COLUMNS), rows))
    lacking: dict[str, list[str]] = {}
    for verdict in found:
        if not verdict.weakest.n:
            lacking.setdefault(verdict.missing, []).append(verdict.claim.key)
    for missing, keys in lacking.items():
        yield f"Undecided, {missing}: {', '.join(f'`{key}`' for key in keys)}.\n"


def _with_departures(verdict: Verdict, claim: TextCell) -> TextCell:
    return TextCell("; ".join([claim.text, *departures_in_words(verdict)]))


def _results(experiment: Experiment) -> str:
    table = result_text(result_table(experiment), experiment.name, _words(experiment), (), shown_metrics([experiment]))
    return to_markdown(table)


def _words(experiment: Experiment) -> str:
    splits, seeds = ({it[place] for it in experiment.replicates} for place in (0, 1))
    name = experiment.name.partition("_")[2].replace("_", " ")
    return f"{name[0].upper()}{name[1:]}: {plural(len(splits), 'split')}, {plural(len(seeds), 'seed')} each"


def _runs_table(gallery: Gallery) -> TextTable:
    """What was run: a line for each file and scenario."""
    rows = []
    for file, spaces in gallery.spaces.items():
        of_scenario: dict[str, list[Experiment]] = {}
        for space in spaces:
            of_scenario.setdefault(space.base.scenario, []).append(gallery.experiments[space.name])
        for scenario, experiments in of_scenario.items():
            runs = {row["run_id"]: row for it in experiments for row in it.runs.to_dict("records")}
            done = [row for row in runs.values() if row["status"] == "finished"]
            splits, seeds = ({row[name] for row in done} for name in ("split_seed", "seed"))
            texts = (scenario, plural(len(splits), "split"), plural(len(seeds), "seed"), f"{len(done):,}")
            minutes = sum(row["seconds"] for row in done) / 60
            rows.append(tuple(map(TextCell, (f"`{file}.py`", *texts, f"{minutes:.0f}"))))
    header = ("search space", "scenario", "patient splits", "on each", "runs", "minutes")
    return TextTable("runs", "Runs", header, tuple(rows))


def _variance_table(record: VarianceBySource) -> TextTable:
    deviations = {name: max(0.0, variance) ** 0.5 for name, variance in record.by_source.items()}
    rows = tuple((TextCell(name), TextCell(number(value))) for name, value in deviations.items())
    sizes = ", ".join(f"{size} of {name}" for name, size in record.sizes.items())
    title = f"Standard deviation of average AUC by source: {plural(record.n, 'run')}, {sizes}"
    return TextTable("variance", title, ("source", "standard deviation"), rows)


def main(arguments: Sequence[str]) -> None:
    """What the command line asks for."""
    match arguments:
        case ["collect", results]:
            collect_from(Path(results))
        case []:
            gallery, drawn = Gallery(RunStore(STORE)), {}
            for old in FOLDER.glob("*.png"):
                old.unlink()
            for name, picture in pictures(gallery):
                (FOLDER / f"{picture.name}.png").write_bytes(small(picture.png))
                caption = f"*{_words(gallery.experiments[name])}. {picture.title}. {picture.caption}*"
                drawn[picture.name] = f"![{picture.alt}](gallery/{picture.name}.png)\n\n{caption}\n"
            first = DOCUMENT.read_text().partition(HEADING)[0]
            DOCUMENT.write_text("\n".join([first + HEADING, *(part for part in page(gallery, drawn) if part)]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
