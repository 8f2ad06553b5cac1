"""The history of a search, its best trials, and which of its parameters matter."""

from __future__ import annotations

from clops_sweep.errors import UsageError

from ...figures.importance import describe_importance, importance
from ...figures.optimization_history import describe_optimization_history, optimization_history
from ...formats import plural
from ...metrics import metric_named
from ...search_trials import best_trials, best_trials_text
from ..figures import history_figure, importance_figure
from ..scene import Scene
from .element import Element, element, notice
from .widgets import choice, experiment_choice, graph, text_table


def objective_of(scene: Scene) -> str:
    """The objective that is chosen, else the first."""
    assert scene.followed.study is not None
    objectives = scene.followed.study.objectives
    return scene.view.metric if scene.view.metric in objectives else next(iter(objectives))


def search_controls(scene: Scene) -> tuple[Element, ...]:
    """Search and objective."""
    assert scene.followed.study is not None
    names = [name for name, it in scene.snapshot.followed.items() if it.study is not None]
    objectives = list(scene.followed.study.objectives)
    texts = [metric_named(name).plain for name in objectives]
    return (
        experiment_choice(scene.view, scene.name, names),
        choice(scene.view, "metric", "Objective", objectives, objective_of(scene), texts),
    )


def search_page(scene: Scene) -> tuple[Element, ...]:
    """History and best trials; what takes longer than a look, the importance, is asked for apart."""
    record = scene.followed.study
    assert record is not None
    states = ", ".join(f"{len(record.of(state))} {state}" for state in ("complete", "pruned", "failed", "running"))
    parts = [element("P", f"{plural(len(record.trials), 'trial')}: {states}.", role="status")]
    for trial in record.of("failed")[:3]:
        parts.append(notice(f"Trial {trial.number} failed: {trial.error or 'unknown error'}."))
    try:
        histories = optimization_history(record)
    except UsageError as error:
        return (*parts, notice(f"{error}."))
    objective = objective_of(scene)
    for history in histories:
        if history.objective == objective:
            described = describe_optimization_history([history])
            parts += [element("H2", "History"), graph(history_figure(history), described, "history")]
    parts += [element("H2", "Best trials")]
    best = best_trials(record, scene.experiment)
    parts.append(text_table(best_trials_text(best, "trials", f"Best trials of {scene.name}")))
    asked = {"query": scene.view.address(), "version": scene.snapshot.version}
    waiting = element("Div", "computing the importance of the parameters …", id="importance", role="status")
    parts += [
        element("H2", "Importance of the parameters"),
        element("Store", id="importance-asked", data=asked),
        waiting,
    ]
    return tuple(parts)


def importance_part(scene: Scene) -> tuple[Element, ...]:
    """Which parameters matter for the objective."""
    objective = objective_of(scene)

    def make() -> Element:
        try:
            record = importance(scene.experiment, objective)
        except ValueError as error:  # UsageError is one
            return notice(f"{error}.")
        return graph(importance_figure(record), describe_importance(record), "importance")

    return (scene.snapshot.once(("importance", scene.name, objective), make),)
