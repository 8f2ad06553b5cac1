"""The report's section that compares strategies across search spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clops_sweep.experiment.spaces.selection import file_name

from ..drawing.pictures import sketch
from ..formats import plural
from ..tables.comparisons import comparison_text
from ..tables.strategies import StrategyComparison, draw_strategies
from .page import Section, free_name, no_links
from .sections import SectionFiles, apart_from_variants, same_words

NAME = "strategies"


def strategies_section(
    compared: Sequence[StrategyComparison], taken: Sequence[str], files: SectionFiles
) -> Section | None:
    """Return the comparison of strategies over all search spaces; None if no two share data, scenario and training.

    Args:
        compared: the comparisons.
        taken: anchors of the other sections.
        files: receives figures and tables.
    """
    if not compared:
        return None
    anchor = free_name(NAME, taken, "-compared")
    pictures, more_pictures, tables = [], [], []
    for number, record in enumerate(compared):
        again = [other for other in compared if (other.dataset, other.scenario) == (record.dataset, record.scenario)]
        place = f" ({again.index(record) + 1} of {len(again)} training settings)" if len(again) > 1 else ""
        where = f"{record.dataset}, {record.scenario}{place}"
        which = "; ".join(
            f"{strategy}: {name}" for strategy, name in zip(record.strategies, record.configurations, strict=True)
        )
        most = max((d.n for row in record.differences.rows for d in row.differences.values()), default=0)
        caption = (
            f"{where}: mean differences between strategies over common patient splits and seeds "
            f"({plural(most, 'pair')} at most), of {record.differences.computed_on}. Filled: the interval excludes 0. "
            "Each strategy is represented by the configuration closest to the paper's, not by its best "
            f"({which})."
        )
        name = f"{anchor}-{number + 1}-{file_name(f'{record.dataset}-{record.scenario}')}"
        main, of_bwt = apart_from_variants(record.metrics)
        same = same_words(record.metrics)
        shown = replace(record, metrics=main)
        pictures.append(files.add_picture(sketch(draw_strategies, shown, name, "Strategies", caption + same)))
        if of_bwt:
            variants = replace(record, metrics=of_bwt)
            title = "Strategies, variants of BWT"
            item = sketch(draw_strategies, variants, f"{name}-variants-of-bwt", title, caption)
            more_pictures.append(files.add_picture(item))
        text = comparison_text(record.differences, f"{name}-differences", f"Strategies on {where}", record.metrics)
        tables.append(no_links(text, files.add_table(text)))
    progress = f"{plural(len(compared), 'comparison')} of strategies with equal training on the same data."
    return Section(
        anchor, "Strategies compared", progress, (), tuple(pictures), tuple(tables), tuple(more_pictures), ()
    )
