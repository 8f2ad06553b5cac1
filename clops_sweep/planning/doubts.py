"""Valid requests that a user may have meant differently."""

from __future__ import annotations

from clops_sweep.data.catalog import DATASETS, LEAD
from clops_sweep.data.recording_facts import PEOPLE_MAY_BE_RECORDINGS, PEOPLE_NOT_GIVEN
from clops_sweep.data.scales import CHANNELS_APART
from clops_sweep.errors import listed
from clops_sweep.experiment.config import BY_DIFFICULTY, RunConfig
from clops_sweep.experiment.tasks import built_tasks, with_distinct_tasks
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State


def doubts(state: State) -> list[str]:
    """Return sentences on prepared data: doubtful people, scales of channels, fields without effect, task orders."""
    request = state.resolved
    used = dict.fromkeys(config.dataset for config in request.selection.configs)
    as_stored = {config.dataset for config in request.selection.configs if _has_default_scales(config)}
    sentences = []
    for dataset in used:
        doubtful = [PEOPLE_NOT_GIVEN, PEOPLE_MAY_BE_RECORDINGS]
        if dataset in as_stored:
            doubtful.append(CHANNELS_APART)
        for note in request.data.notes(dataset):
            if note.startswith(tuple(doubtful)):
                sentences.append(f"{dataset}: {note}")
    return [*sentences, *_unused_domains(request), *_seeds_of_given_splits(request), *_new_before_learned(request)]


def _has_default_scales(config: RunConfig) -> bool:
    """Return whether a network is trained on frames as stored because `normalize` was not given."""
    return config.normalize == "none" and "normalize" not in config.explicit and config.encoder is None


def _seeds_of_given_splits(request: Request) -> list[str]:
    """Return a sentence for each data set with a given split, of which runs differ in nothing but the split seed."""
    seeds: dict[str, set[int]] = {}
    for config in request.selection.configs:
        if not config.draws_with_split_seed:
            seeds.setdefault(config.dataset, set()).add(config.split_seed)
    sentences = []
    for dataset, of_runs in seeds.items():
        if len(of_runs) > 1 and request.data.has_given_split(dataset):
            sentences.append(
                f"{dataset}: its split is given in the data, so all {len(of_runs)} split seeds give the same runs; "
                "leave out split_seed, and take several seeds"
            )
    return sentences


def _new_before_learned(request: Request) -> list[str]:
    """Return a sentence on each order in which a task that the model at the start has not learned is before others."""
    from clops_sweep.learning.models.model_facts import facts_in

    sentences: dict[str, None] = {}
    continued = [config for config in request.selection.configs if config.start_from is not None]
    for config in with_distinct_tasks(continued, "task_order"):
        if config.task_order in BY_DIFFICULTY or request.data_hash(config) is None:
            continue
        frames = request.data.frames(config.data_key)
        assert frames.start_model is not None
        learned = facts_in(frames.start_model.model).tasks
        tasks = [task.name for task in built_tasks(config, frames).tasks]
        known = [position for position, name in enumerate(tasks) if name in learned]
        early = [name for name in tasks[: max(known, default=0)] if name not in learned]
        if early:
            come = "comes" if len(early) == 1 else "come"
            sentence = (
                f"{config.dataset}: {listed(early)}, which the model of {config.start_from} has not learned, {come} "
                f"before {tasks[known[-1]]}, which it has; to learn new tasks last, give task_order"
            )
            sentences[sentence] = None
    return list(sentences)


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
