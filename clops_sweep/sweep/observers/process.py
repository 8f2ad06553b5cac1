"""The process in which an observer runs: `python -m clops_sweep.sweep.observers.process`, started by a worker.

It reads pickled values from standard input, first an `Observing`, then one event after the other, and answers each with
a line of JSON: null, or what was raised. It ends with its input. What an observer prints goes to standard error, the
log of the worker.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import IO, Any

from clops_sweep.errors import OF_USERS, one_line
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.registry import OBSERVERS, Plugin
from clops_sweep.sweep.observers.asked import Observing

_LONGEST = 500


def main() -> None:
    """Calls the observer until the worker has no more to say, or has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user means the sweep, which will close the input
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # so that nothing that is printed can be taken for an answer
    try:
        observing: Observing = pickle.load(source)
        observer = _made(observing)
    except OF_USERS as error:
        _answer(answers, error)
        return
    _answer(answers, None)
    while True:
        try:
            event = pickle.load(source)
        except EOFError:
            return
        try:
            observer(event)
        except OF_USERS as error:
            _answer(answers, error)
        else:
            _answer(answers, None)


def _made(observing: Observing) -> Callable[[Event], Any]:
    """The observer: a function as it is, or an object of a class."""
    if observing.pickled is None:
        member = OBSERVERS[observing.name]
    else:
        plugin: Plugin = pickle.loads(observing.pickled)
        member = plugin.member
    if isinstance(member, type):
        member = member(observing.target, observing.folder)
    made: Callable[[Event], Any] = member
    return made


def _answer(answers: IO[str], error: BaseException | None) -> None:
    answers.write(json.dumps(None if error is None else _said(error)) + "\n")
    answers.flush()


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {one_line(error)[:_LONGEST]}"
    except Exception:  # its text is the user's own code
        return type(error).__name__


if __name__ == "__main__":
    main()
    sys.exit(0)
