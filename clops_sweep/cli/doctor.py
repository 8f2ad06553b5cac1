"""`clops-sweep doctor`: what this machine or cluster has and what is missing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clops_sweep.cli.options import NotEmpty, data_root_option, prepared_root_option, results_option
from clops_sweep.errors import UsageError, one_line
from clops_sweep.machine import available_cores, software

if TYPE_CHECKING:
    from clops_sweep.store.run_store import RunStore


@click.command()
@results_option
@data_root_option
@prepared_root_option
@click.option("--address", type=NotEmpty(), help="A Ray cluster to look at (auto or HOST:PORT).")
def doctor(results: str, data_root: Path | None, prepared_root: Path | None, address: str | None) -> None:
    """Say what this machine or cluster has and what is missing."""
    from clops_sweep.store.run_store import RunStore

    store = RunStore.named(results)
    for name, value in software().items():
        click.echo(f"{name:16} {'unknown' if value is None else value}")
    _machine()
    _store(store)
    _data(data_root, prepared_root)
    _gpus()
    if address:
        _cluster(address)


def _machine() -> None:
    from clops_sweep import native

    cores = available_cores()
    click.echo(f"{'cores':16} {cores} for this process: that many runs at a time by default")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    click.echo(f"{'memory':16} {memory:.1f} GiB")
    variants = native.available()
    kernels = f"{', '.join(variants)} (the first is used)" if variants else native.why_missing()
    click.echo(f"{'native kernels':16} {kernels}")


def _store(store: RunStore) -> None:
    try:
        states = list(store.statuses().values())
    except UsageError as error:
        click.echo(f"{'results':16} {error}")
        return
    click.echo(
        f"{'results':16} {store.files.shown}: {states.count('finished')} runs finished, {states.count('failed')} failed"
    )
    if store.files.folder is not None and store.files.folder.exists():
        click.echo(f"{'disk':16} {shutil.disk_usage(store.uri).free / 2**30:.1f} GiB free for results")


def _data(data_root: Path | None, prepared_root: Path | None) -> None:
    from clops_sweep.data.catalog import DATASETS
    from clops_sweep.data.prepared.prepared_folder import default_prepared_root, state

    root = prepared_root or default_prepared_root()
    click.echo(f"{'prepared data':16} {root}")
    for name in DATASETS:
        click.echo(f"  {name:15} {state(name, prepared_root=root, data_root=data_root)}")


def _gpus() -> None:
    import torch

    if not torch.cuda.is_available():
        click.echo(f"{'GPUs':16} none that PyTorch {torch.__version__} can use: runs are computed on CPUs")
        return
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        size = f"{properties.total_memory / 2**30:.0f} GiB"
        try:
            torch.ones(1, device=torch.device("cuda", index)).sum().item()
        except RuntimeError as error:  # others have its memory, or this PyTorch has no code for it
            size = f"it cannot be used ({one_line(error)})"
        click.echo(f"{'GPU':16} {properties.name}: {size}")


def _cluster(address: str) -> None:
    from clops_sweep.execution.cluster.start import cluster
    from clops_sweep.execution.jobs import Resources  # isort: split

    import ray

    with cluster(Resources(address=address), {}):
        nodes = [node for node in ray.nodes() if node["Alive"]]
        click.echo(f"{'cluster':16} {len(nodes)} machines at {address}")
        for node in nodes:
            has = node["Resources"]
            click.echo(f"  {node['NodeManagerAddress']:20} {has.get('CPU', 0):g} CPUs, {has.get('GPU', 0):g} GPUs")
    sys.stdout.flush()
