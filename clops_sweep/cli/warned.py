"""Warnings of the libraries of clops-sweep, as sentences of the command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def warned() -> Iterator[None]:
    """Print warnings in the block as sentences on standard error, without the place in the code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: click.echo(f"clops-sweep: {message}", err=True)
        yield
