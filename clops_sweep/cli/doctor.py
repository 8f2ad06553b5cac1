"""`clops-sweep doctor`: what this machine or cluster has and what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli.options import (
    NotEmpty,
    data_root_option,
    json_option,
    prepared_root_option,
    print_json,
    results_option,
)
from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.machine import available_cores, software, usable_gpus

if TYPE_CHECKING:
    from clops_sweep.store.run_store import RunStore


@click.command()
@results_option
@data_root_option
@prepared_root_option
@click.option("--address", type=NotEmpty(), help="Ray cluster to inspect (auto or HOST:PORT).")
@json_option
def doctor(
    results: str, data_root: Path | None, prepared_root: Path | None, address: str | None, as_json: bool
) -> None:
    """Report what this machine or cluster has and what is missing."""
    from clops_sweep.store.run_store import RunStore

    found = _machine() | _store(RunStore.named(results)) | _data(data_root, prepared_root) | {"gpus": _gpus()}
    found["cluster"] = _cluster(address) if address else None
    if as_json:
        print_json(found)
    else:
        _print(found, address)


def _machine() -> dict[str, Any]:
    from clops_sweep import native

    return {
        "software": software(),
        "cores": available_cores(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernels": native.available(),
        "kernels_missing": None if native.available() else native.why_missing(),
        "braindecode": braindecode.installed_version(),
        "braindecode_missing": _braindecode_missing(),
    }


def _braindecode_missing() -> str | None:
    """Return why networks of braindecode cannot be used, with what to install; None if they can."""
    if unavailable := braindecode.why_unavailable():
        return f"network 'braindecode:NAME' {unavailable}"
    from clops_sweep.learning.networks.of_braindecode import torchaudio_problem

    return torchaudio_problem()


def _store(store: RunStore) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(("finished", "failed", "disk_free", "store_error"))
    try:
        states = list(store.statuses().values())
        found |= {"finished": states.count("finished"), "failed": states.count("failed")}
        if store.files.folder is not None and store.files.folder.exists():
            found["disk_free"] = shutil.disk_usage(store.uri).free
    except UsageError as error:
        found["store_error"] = str(error)
    return {"results": store.files.shown, **found}


def _data(data_root: Path | None, prepared_root: Path | None) -> dict[str, Any]:
    from clops_sweep.data.catalog import DATASETS
    from clops_sweep.data.prepared.commands import default_prepared_root
    from clops_sweep.data.prepared.prepared_folder import state

    root = prepared_root or default_prepared_root()
    states = {name: state(name, prepared_root=root, data_root=data_root) for name in DATASETS}
    return {"prepared_root": root, "datasets": states}


def _gpus() -> list[dict[str, Any]]:
    """Return the GPUs that PyTorch sees, with the error of each that it cannot use."""
    return [{**gpu._asdict(), "error": _gpu_error(index)} for index, gpu in enumerate(usable_gpus())]


def _gpu_error(index: int) -> str | None:
    import torch

    try:
        torch.ones(1, device=torch.device("cuda", index)).sum().item()
    except RuntimeError as error:  # out of memory, or a GPU that this PyTorch does not support
        return one_line(error)
    return None


def _cluster(address: str) -> list[dict[str, Any]]:
    """Return the machines of a cluster."""
    from clops_sweep.execution.cluster.start import cluster
    from clops_sweep.execution.jobs import Resources  # isort: split

    import ray

    with cluster(Resources(address=address), {}):
        return [
            {
                "address": node["NodeManagerAddress"],
                "cpus": node["Resources"].get("CPU", 0),
                "gpus": node["Resources"].get("GPU", 0),
            }
            for node in ray.nodes()
            if node["Alive"]
        ]


def _print(found: Mapping[str, Any], address: str | None) -> None:
    def line(name: str, text: object) -> None:
        click.echo(f"{name:16} {text}")

    for name, value in found["software"].items():
        line(name, "unknown" if value is None else value)
    line("cores", f"{found['cores']} for this process: by default, as many runs at a time")
    line("memory", f"{found['memory'] / 2**30:.1f} GiB")
    line("native kernels", found["kernels_missing"] or f"{', '.join(found['kernels'])} (the first is used)")
    line("braindecode", found["braindecode_missing"] or found["braindecode"])
    counts = f"{found['results']}: {found['finished']} runs finished, {found['failed']} failed"
    line("results", found["store_error"] or counts)
    if found["disk_free"] is not None:
        line("disk", f"{found['disk_free'] / 2**30:.1f} GiB free for results")
    line("prepared data", found["prepared_root"])
    for name, state in found["datasets"].items():
        click.echo(f"  {name:15} {state}")
    if not found["gpus"]:
        version = found["software"]["torch"]
        line("GPUs", f"none that PyTorch {version} can use: runs are computed on CPUs")
    for gpu in found["gpus"]:
        size = f"it cannot be used ({gpu['error']})" if gpu["error"] else f"{gpu['memory'] / 2**30:.0f} GiB"
        line("GPU", f"{gpu['name']}: {size}")
    if address:
        line("cluster", f"{len(found['cluster'])} machines at {address}")
        for node in found["cluster"]:
            click.echo(f"  {node['address']:20} {node['cpus']:g} CPUs, {node['gpus']:g} GPUs")
