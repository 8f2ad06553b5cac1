"""A progress bar with the remaining time on standard error; a line if it is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")


def with_progress(items: Iterable[_Item], total: int | None, description: str, show: bool) -> Iterator[_Item]:
    """Yield items and show a progress bar of `total` on a terminal; elsewhere say once what is being done."""
    if show:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            with Progress(*columns, console=console, transient=True) as bar:
                yield from bar.track(items, total=total, description=description)
            return
        console.print(f"{description} ...", highlight=False, markup=False, soft_wrap=True)
    yield from items
