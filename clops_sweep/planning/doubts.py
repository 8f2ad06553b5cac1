"""Valid requests that a user may have meant differently."""

from __future__ import annotations

from clops_sweep.data.catalog import DATASETS, LEAD
from clops_sweep.data.recording_facts import PEOPLE_NOT_GIVEN
from clops_sweep.errors import listed
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State


def doubts(state: State) -> list[str]:
    """Return sentences on custom data sets that are prepared: unused domains, and people who are not given."""
    request = state.resolved
    used = dict.fromkeys(config.dataset for config in request.selection.configs)
    sentences = []
    for dataset in used:
        for note in request.data.notes(dataset):
            if note.startswith(PEOPLE_NOT_GIVEN):
                sentences.append(f"{dataset}: {note}")
    return [*sentences, *_unused_domains(request)]


def _unused_domains(request: Request) -> list[str]:
    """Return a sentence for each custom data set whose domains are not used because `domain` was not given.

    In domain_il, a task is a lead by default.
    """
    sentences: dict[str, None] = {}
    for config in request.selection.configs:
        is_by_default = config.scenario == "domain_il" and "domain" not in config.explicit
        if not is_by_default or config.domain != LEAD or DATASETS.packaged(config.dataset) is not None:
            continue
        if request.data_hash(config) is None:
            continue
        domains = list(request.data.frames(config.data_key).domains)
        if domains:
            sentence = (
                f"{config.dataset}, domain_il: each task is a lead; for tasks by {listed(domains)}, set "
                f"domain={domains[0]!r}, or domain={LEAD!r} to keep this"
            )
            sentences[sentence] = None
    return list(sentences)
