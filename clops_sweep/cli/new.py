"""`clops-sweep new`: writes a search-space file to start from, or a job script for a cluster."""

from __future__ import annotations

import os
import re
import secrets
import shlex
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import click

from clops_sweep.cli.options import NotEmpty, NotEmptyPath, json_option, print_json, results_option
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.space_files import criteria_beside, shipped_space

_FIRST_SPACE = '''"""CLOPS on synthetic ECG, storing 10 or 50 % of instances by beta or at random. Takes a minute."""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="first_sweep",
    # Settings of all runs. `clops-sweep data list` lists the data sets.
    base=RunConfig(scenario="class_il", dataset="synthetic", strategy="clops", epochs_per_task=4, mc_samples=5),
    axes={
        # A config field and its values.
        "storage_fraction": [0.1, 0.5],
        # A name that you choose, with named variants. A variant sets any number of fields.
        "variant": {"CLOPS": {}, "Random storage": {"storage_order": "random"}},
        # Patient splits: each has other people in training, validation and test. Statistics are by splits.
        "split_seed": range(3),
    },
    seeds=[0],  # every combination of the axes is run with each seed
)
'''
"""A search-space file that needs no data."""

_TEMPLATES = ("arrays", "csv", "wfdb", "edf", "hdf5", "wards", "wards_edf", "network", "method")
"""Search-space files in the folder `recipes`: for recordings of a user, and for a network or method."""

_NEEDS_DATA = {
    "arrays": "your arrays into wearable.npz",
    "csv": "your files and table.csv into the folder recordings",
    "wfdb": "your records into the folder hospital",
    "edf": "your files into the folder nights",
    "hdf5": "your arrays into exams.h5",
    "wards": "your records and records.csv into the folder hospital",
    "wards_edf": "your files and records.csv into the folder hospital",
}
"""What a template needs beside it."""

_WITH_CRITERIA = ("wards", "wards_edf")
"""The templates that come with acceptance criteria, in a file beside them."""

_CRITERIA = "wards.toml"
"""The template of these criteria."""

_RECIPES = {
    "slurm": ("slurm.sh", "sbatch"),
    "slurm_array": ("slurm_array.sh", "sbatch"),
    "kuberay": ("kuberay.yaml", "kubectl create -f"),
}
"""The recipe of each flag: its file in the folder `recipes`, and the command that submits it."""

_TIME_LIMITS = {"slurm": "12:00:00", "slurm_array": "04:00:00"}
"""The time limits in the recipes."""


@click.command()
@click.argument("name", metavar="FILE", type=NotEmptyPath())
@click.option(
    "--from", "source", metavar="NAME", help="Copy a search space of the package, such as class_il_grid or paper."
)
@click.option(
    "--template",
    type=click.Choice(_TEMPLATES),
    help="Write a search space on your recordings (arrays, csv, wfdb, edf, hdf5), on wards with an update "
    "report and its criteria (wards, of WFDB records, or wards_edf), or with your network or method.",
)
@click.option(
    "--continue",
    "continued",
    type=NotEmpty(),
    metavar="RUN_ID",
    help="Write a search space that continues the stored model of a run with the recordings of a new ward.",
)
@results_option
@click.option("--slurm", is_flag=True, help="Write a Slurm job instead: a Ray cluster on several nodes.")
@click.option("--slurm-array", is_flag=True, help="Write a Slurm job array instead: one shard per task, without Ray.")
@click.option("--kuberay", is_flag=True, help="Write a RayJob for Kubernetes with the KubeRay operator instead.")
@click.option("--space", metavar="SPACE.py", type=NotEmpty(), help="The search space that the job runs.")
@click.option("--time", "limit", metavar="HH:MM:SS", help="The time limit of the Slurm job.")
@click.option("--shards", type=click.IntRange(1), help="Number of tasks of the job array. [default: 16]")
@json_option
def new(
    name: Path,
    source: str | None,
    template: str | None,
    continued: str | None,
    results: str,
    slurm: bool,
    slurm_array: bool,
    kuberay: bool,
    space: str | None,
    limit: str | None,
    shards: int | None,
    as_json: bool,
) -> None:
    """Write a first search-space file, or a job script for a cluster.

    The search space is a small example with comments, one for your recordings, network or method (--template), a
    copy of one of the package (--from), or one that continues a model in use with a new ward (--continue, with its
    store in --results).
    """
    flags = {"slurm": slurm, "slurm_array": slurm_array, "kuberay": kuberay}
    recipe = _recipe([flag for flag, given in flags.items() if given], source, space, limit, shards)
    if template and (recipe is not None or source is not None):
        raise click.UsageError("--template goes with neither --from nor a job; expected it alone")
    if continued and (recipe is not None or source is not None or template):
        raise click.UsageError("--continue goes with neither --from, --template nor a job; expected it alone")
    if continued:
        _write_continued(name, continued, results, as_json)
        return
    with one_sentence(name):
        _check(name, recipe)
        if recipe is not None:
            content = _filled_in(recipe, space, limit, shards)
        elif source is not None:
            content = _shipped(source)
        elif template is not None:
            content = _template(f"{template}.py", name)
        else:
            content = _FIRST_SPACE.encode()
        criteria = criteria_beside(name) if template in _WITH_CRITERIA else None
        if criteria is not None:
            if os.path.lexists(criteria):
                raise _taken(criteria)
            _write(criteria, _template(_CRITERIA, name))
        _write(name, content)
    command = shlex.join([*(_RECIPES[recipe][1].split() if recipe else ["clops-sweep"]), str(name)])
    if criteria is not None:
        command += " --keep predictions"
    if as_json:
        print_json({"file": name, "criteria": criteria, "command": command})
    elif recipe == "kuberay":
        click.echo(f"{name} is written; put your image and your bucket in it, then submit it with: {command}")
    elif criteria is not None:
        click.echo(
            f"{name} and {criteria} are written; adapt them, put {_NEEDS_DATA[str(template)]} beside them, then run "
            f"them with: {command}"
        )
    elif template in _NEEDS_DATA:
        click.echo(f"{name} is written; adapt it, put {_NEEDS_DATA[template]} beside it, then run it with: {command}")
    else:
        click.echo(f"{name} is written; {'submit' if recipe else 'run'} it with: {command}")


def _write_continued(name: Path, run_id: str, results: str, as_json: bool) -> None:
    """Write the search space that continues a run, and say what to fill in."""
    from clops_sweep.cli.continued import continued_space

    with one_sentence(name):
        _check(name, None)
        space = continued_space(results, run_id, name)
        criteria = criteria_beside(name) if space.criteria is not None else None
        if criteria is not None and space.criteria is not None:
            if os.path.lexists(criteria):
                raise _taken(criteria)
            _write(criteria, space.criteria)
        _write(name, space.text.encode())
    command = shlex.join(["clops-sweep", str(name), "--keep", "predictions", "--keep", "models"])
    if as_json:
        print_json({"file": name, "criteria": criteria, "command": command})
        return
    beside = space.declared_in.resolve().parent == name.resolve().parent
    written, files = f"{name} is written", "it"
    if criteria is not None:
        written, files = f"{name} and {criteria}, the acceptance criteria of the run, are written", "both"
    root = "" if beside else f"; move {files} beside {shorten(space.declared_in)}, where the recordings are"
    click.echo(
        f"{written}{root}; put the new recordings and their table into {space.folder}, beside the old ones, "
        f"write the name of the table into the line NEW = ..., then run it with: {command}"
    )


def _template(template: str, name: Path) -> bytes:
    """Return a template with the names of the files that are written."""
    text = Path(__file__).with_name("recipes").joinpath(f"{template}.template").read_text()
    files = {"CRITERIA": criteria_beside(name), "FILE": name}
    if template.startswith(_WITH_CRITERIA):
        text = re.sub("|".join(files), lambda word: shlex.quote(str(files[word[0]])), text)
    return text.encode()


def _recipe(
    flags: list[str], source: str | None, space: str | None, limit: str | None, shards: int | None
) -> str | None:
    """Return the requested recipe; None for a search space.

    Raises:
        click.UsageError: several recipes are requested, or an option that does not apply.
    """
    if len(flags) > 1:
        raise click.UsageError(f"{' and '.join(map(_option, flags))} exclude each other; expected one of them")
    recipe = flags[0] if flags else None
    wrong = {
        "--from": (source, recipe is None, "goes with a search space, not with a job"),
        "--space": (space, recipe is not None, "needs --slurm, --slurm-array or --kuberay"),
        "--time": (limit, recipe in ("slurm", "slurm_array"), "needs --slurm or --slurm-array"),
        "--shards": (shards, recipe == "slurm_array", "needs --slurm-array"),
    }
    for option, (value, allowed, sentence) in wrong.items():
        if value is not None and not allowed:
            raise click.UsageError(f"{option} {sentence}")
    if limit is not None and not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", limit):
        raise click.UsageError(f"--time {limit!r}: not a time limit of Slurm; expected something like 04:00:00 or 1-12")
    return recipe


def _option(flag: str) -> str:
    return "--" + flag.replace("_", "-")


def _filled_in(recipe: str, space: str | None, limit: str | None, shards: int | None) -> bytes:
    """Return a recipe with the user's values instead of its own."""
    file = Path(__file__).with_name("recipes") / _RECIPES[recipe][0]
    text = file.read_text()
    if space is not None:
        text = text.replace("space=space.py\n", f"space={shlex.quote(space)}\n")
        text = text.replace("/opt/clops-sweep/search_spaces/class_il_grid.py", shlex.quote(space))
    if limit is not None:
        text = text.replace(f"--time={_TIME_LIMITS[recipe]}", f"--time={limit}")
    if shards is not None:
        text = text.replace("--array=1-16", f"--array=1-{shards}").replace("/16", f"/{shards}")
        text = text.replace("one of 16 shards", f"one of {shards} shards")
    return text.replace('"2.60.0"', f'"{version("ray")}"').encode()


def _check(path: Path, recipe: str | None) -> None:
    if recipe is None and path.suffix != ".py":
        raise UsageError(f"{shorten(path)}: a search-space file needs a name that ends in .py")
    if recipe is not None and path.suffix == ".py":
        raise UsageError(
            f"{shorten(path)}: a job script is not a Python file; name it {path.with_suffix('.sh').name}, for example"
        )
    if not path.parent.is_dir():
        raise UsageError(f"{shorten(path)}: there is no folder {shorten(path.parent)}; make it first or name another")
    if os.path.lexists(path):
        raise _taken(path)


def _taken(path: Path) -> UsageError:
    return UsageError(f"{shorten(path)}: exists already and is not replaced; choose another name")


def _shipped(name: str) -> bytes:
    try:
        return shipped_space(name).read_bytes()
    except UsageError as error:
        raise UsageError(f"--from {error}") from None


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, without replacing an existing one.

    Raises:
        UsageError: `path` exists, even as a broken link.
        OSError: the file cannot be written; the error names `path`.
    """
    staging = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with open(staging, "xb") as file:
            file.write(content)
        open(path, "xb").close()  # fails if the name has been taken meanwhile
        os.replace(staging, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):
            staging.unlink(missing_ok=True)
