"""A recorder that computes recorded passes again, so that recordings can be tested without a GPU."""

from __future__ import annotations

from clops_sweep.learning.learners.graphs import Pass


class Repeating:
    """Recorder whose replay is the pass itself.

    Attributes:
        replays: number of replays.
        records: number of recorded passes.
    """

    replays = 0
    records = 0

    def record(self, work: Pass) -> Pass:
        """As `Recorder.record`: computes the pass, as a capture does, and returns what computes it again."""
        work()
        type(self).records += 1

        def replay() -> object:
            type(self).replays += 1
            return work()

        return replay  # type: ignore[return-value]
