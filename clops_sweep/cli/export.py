"""`clops-sweep export`: writes a stored model as ONNX."""

from __future__ import annotations

import os
from pathlib import Path

import click

from clops_sweep.cli.options import (
    Number,
    json_option,
    plugins_option,
    print_json,
    results_option,
    run_id_argument,
)
from clops_sweep.data.files.folder import one_sentence, write_file
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.options import IntOption
from clops_sweep.planning.changes import change_of_network
from clops_sweep.store.run_store import RunStore


@click.command()
@run_id_argument
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@results_option
@click.option(
    "--task", type=Number(IntOption(1, ge=1)), help="The model after this many tasks; by default after the last."
)
@plugins_option
@json_option
def export(run_id: str, file: Path, results: str, task: int | None, as_json: bool) -> None:
    """Write a stored model (--keep models) to FILE.onnx. RUN_ID may be any unambiguous prefix.

    The ONNX model takes `frames`, float32 [batch, channels, samples], and returns `probabilities` [batch, outputs]. If
    the run used an encoder, the model includes it and takes the encoder's input signals.
    """
    from clops_sweep.learning.encoders.encoders import Encoders
    from clops_sweep.learning.models.onnx_export import onnx_bytes
    from clops_sweep.learning.models.trained_model import model_from

    if file.suffix != ".onnx":
        raise UsageError(f"{file}: expected a name that ends in .onnx")
    if os.path.lexists(file):  # also a link to nothing
        raise UsageError(f"{file}: exists already; delete it or choose another name")
    if not file.parent.is_dir():
        raise UsageError(f"{file}: there is no folder {file.parent}")
    store = RunStore.named(results)
    store.files.check_is_there()
    found, encoders = store.find(run_id), Encoders(store.models.read)
    model = model_from(store.models.read(found, task), encoders.of_model, f"model of run {found}")
    changed = change_of_network(store, found)
    if changed is not None:
        click.echo(f"clops-sweep: {changed}", err=True)
    content = onnx_bytes(model)
    with one_sentence(file):
        write_file(file, content)
    if as_json:
        print_json({"run_id": found, "file": file, "classes": model.classes})
        return
    click.echo(f"{file}: {len(model.classes)} outputs ({', '.join(model.classes)})")
