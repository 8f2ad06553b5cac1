"""The people whose decisions an update changes, under pseudonyms, and confusion matrices before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.pseudonyms import Pseudonyms

from ..people.predicted import Predicted
from .paired import Paired

Names = npt.NDArray[np.object_]
Matrix = Mapping[str, Mapping[str, int]]
"""Number of instances by true class, then by decision."""

BECAME = ("wrong", "right", "wrong, otherwise")
"""What decisions that change become: "wrong, otherwise" is another decision that is wrong as well."""

CHANGES = {"": "", "wrong": "became wrong", "right": "became right", "wrong, otherwise": "stayed wrong"}
"""What decisions became, in words; empty for an equal decision."""

MOST_PEOPLE, MOST_CHANGES, MOST_TRACINGS = 100, 100, 6
"""Most people in a table, most of their changed decisions in a table, and most recordings whose tracings are drawn."""


@dataclass(frozen=True)
class Flip:
    """An instance whose decision changed.

    Attributes:
        instance: its index in the data set.
        task: its task.
        label: its true class or classes.
        before: the decision before.
        after: the decision after.
        became: one of `BECAME`.
        probability_before: the probability of the true class before; NaN if it has not one true class.
        probability_after: the same after.
        task_title: the title of its task.
    """

    instance: int
    task: str
    label: str
    before: str
    after: str
    became: str
    probability_before: float
    probability_after: float
    task_title: str


@dataclass(frozen=True)
class ChangedPerson:
    """A person with at least one decision that changed.

    Attributes:
        pseudonym: a keyed hash of the id; see `Pseudonyms`.
        instances: number of compared instances of the person.
        flips: the decisions that changed, those that became wrong first, those that stay wrong last.
    """

    pseudonym: str
    instances: int
    flips: tuple[Flip, ...]

    def count(self, became: str) -> int:
        """Return the number of decisions that became one of `BECAME`."""
        return sum(flip.became == became for flip in self.flips)


@dataclass(frozen=True, eq=False)
class FlipTracing:
    """The signal of a flip: float [channels, samples], with its duration in seconds, if known, and its unit."""

    pseudonym: str
    flip: Flip
    signal: npt.NDArray[np.float64]
    channels: tuple[str, ...]
    seconds: float | None
    unit: str


def outputs_of(new: Mapping[str, Paired]) -> dict[int, str]:
    """Return the class that each output means, from the instances of new classes, by name of the class."""
    found = {}
    for name, of_class in new.items():
        outputs = np.flatnonzero(of_class.targets.all(axis=0)).tolist()
        if len(outputs) == 1:
            found[outputs[0]] = name
    return found


def decisions(paired: Paired, model: Predicted, new: Mapping[int, str] = MappingProxyType({})) -> Names:
    """Return the decision of a model on each instance in words: the names of its classes, joined by "+".

    Args:
        paired: the instances.
        model: the predictions of the model.
        new: the class of outputs that no instance has.
    """
    named = np.full(len(paired), "", dtype=object)
    for task in dict.fromkeys(paired.tasks.tolist()):
        rows = np.flatnonzero(paired.tasks == task)
        outputs = _names_of_outputs(paired, rows, new)
        absent = _name_of_absence(paired, rows)
        for row in rows.tolist():
            said = [outputs[output] for output in np.flatnonzero(model.said[row]).tolist()]
            named[row] = "+".join(said) or absent
    return named


def _names_of_outputs(paired: Paired, rows: npt.NDArray[np.intp], new: Mapping[int, str]) -> list[str]:
    """Return the class that each output means on the instances of a task; its number where they do not tell."""
    names = []
    for output in range(paired.targets.shape[1]):
        name = _only_class(paired, rows, output) or _only_class(paired, np.arange(len(paired)), output)
        names.append(name or new.get(output) or f"output {output + 1}")
    return names


def _only_class(paired: Paired, rows: npt.NDArray[np.intp], output: int) -> str:
    """Return the class whose instances are those with the output; empty without one."""
    target = paired.targets[rows, output]
    for name, has in paired.classes.items():
        if target.any() and np.array_equal(has[rows], target):
            return name
    return ""


def _name_of_absence(paired: Paired, rows: npt.NDArray[np.intp]) -> str:
    """Return the class of the instances without any output; "none" if there is no single one."""
    labels = set(paired.labels[rows][~paired.targets[rows].any(axis=1)].tolist())
    return labels.pop() if len(labels) == 1 else "none"


def confusion(paired: Paired, decided: Names) -> Matrix:
    """Return the number of instances by true class and decision; empty if instances have several classes."""
    labels = paired.labels.tolist()
    if any(label not in paired.classes for label in labels):
        return {}
    others = sorted({*decided.tolist()} - paired.classes.keys())
    names = [*paired.classes, *others]
    truths = list(paired.classes)
    counts = {truth: dict.fromkeys(names, 0) for truth in truths}
    for truth, decision in zip(labels, decided.tolist(), strict=True):
        counts[truth][decision] += 1
    return counts


def changed_people(
    paired: Paired,
    before: Names,
    after: Names,
    names: Pseudonyms,
    titles: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ChangedPerson, ...]:
    """Return all people with decisions that changed, those with most decisions that became wrong first.

    Args:
        paired: the compared instances.
        before: the decisions before, in words.
        after: the decisions after.
        names: the pseudonyms of the data set.
        titles: titles of the tasks by name; a task without one is called by its name.
    """
    changed = np.flatnonzero((paired.before.said != paired.after.said).any(axis=1))
    likely = of_true_class(paired.before).tolist(), of_true_class(paired.after).tolist()
    flips_of: dict[str, list[Flip]] = {}
    for row in changed.tolist():
        became = became_what(bool(paired.before.right[row]), bool(paired.after.right[row]))
        instance, task, label = int(paired.instances[row]), str(paired.tasks[row]), str(paired.labels[row])
        decided = str(before[row]), str(after[row])
        title = titles.get(task, task)
        flip = Flip(instance, task, label, *decided, became, likely[0][row], likely[1][row], title)
        flips_of.setdefault(str(paired.patients[row]), []).append(flip)
    people = []
    for person, flips in flips_of.items():
        ordered = tuple(sorted(flips, key=lambda flip: (BECAME.index(flip.became), flip.instance, flip.task)))
        instances = int((paired.patients == person).sum())
        people.append(ChangedPerson(names.of(person), instances, ordered))
    return tuple(sorted(people, key=lambda person: (-person.count("wrong"), -len(person.flips), person.pseudonym)))


def of_true_class(model: Predicted) -> npt.NDArray[np.float64]:
    """Return the probability that a model gives to the true class of each instance, [n].

    NaN for an instance that has not one true class: without any, or with several. With a single output, the class
    without it has the rest of the probability.
    """
    if model.targets.shape[1] == 1:
        of_output = model.probabilities[:, 0]
        return np.where(model.targets[:, 0], of_output, 1 - of_output)
    has_one = model.targets.sum(axis=1) == 1
    return np.where(has_one, (model.probabilities * model.targets).sum(axis=1), math.nan)


def became_what(right_before: bool, right_after: bool) -> str:
    """Return which of `BECAME` holds for a decision that changed."""
    if right_after:
        return "right"
    return "wrong" if right_before else "wrong, otherwise"


def tracings_of(people: Sequence[ChangedPerson], frames: FrameSet | None) -> tuple[FlipTracing, ...]:
    """Return the tracing of the first changed decision of the first people; none without the frames of the run."""
    if frames is None:
        return ()
    chosen = [(person.pseudonym, person.flips[0]) for person in people[:MOST_TRACINGS]]
    if not chosen or any(flip.instance >= len(frames) for _, flip in chosen):
        return ()
    signals = frames.signal(np.array([flip.instance for _, flip in chosen]))
    tracings = []
    for (pseudonym, flip), signal in zip(chosen, signals, strict=True):
        names = frames.lead_names if signal.ndim == 2 else (frames.lead_names[int(frames.leads[flip.instance])],)
        channels = np.atleast_2d(signal).astype(np.float64)
        tracings.append(FlipTracing(pseudonym, flip, channels, tuple(names), frames.frame_seconds, frames.unit))
    return tuple(tracings)
