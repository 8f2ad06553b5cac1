"""Write config.md beside this file: fields of RunConfig, the options of built-in plug-ins, and these plug-ins.

Also write the lists of commands and of names at the beginning of ../commands.md and ../api/*.md.

``python docs/reference/generate.py``
"""

from __future__ import annotations

import inspect
import pydoc
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import click

from clops_sweep import RunConfig
from clops_sweep.cli.commands import SECTIONS
from clops_sweep.experiment.fields import facts_of
from clops_sweep.experiment.plugins.options import (
    LARGEST,
    OPTIONS,
    bounds_of,
)
from clops_sweep.experiment.plugins.registry import BUILT_IN, REGISTRIES

PAGE = Path(__file__).with_name("config.md")
KINDS = {
    "strategy": "Methods",
    "scenario": "Scenarios",
    "acquisition": "Acquisition functions",
    "storage_function": "Storage functions",
    "network": "Networks",
    "augment": "Augmentations",
}
CITE = {
    "clops": ["kiyasseh2021clinical"],
    "replay": ["rolnick2019replay"],
    "er": ["chaudhry2019er"],
    "er_ace": ["caccia2022erace"],
    "derpp": ["buzzega2020der"],
    "aser": ["shim2021aser", "jia2019knnshapley"],
    "mir": ["aljundi2019mir"],
    "gdumb": ["prabhu2020gdumb"],
    "icarl": ["rebuffi2017icarl"],
    "gem": ["lopezpaz2017gem"],
    "agem": ["chaudhry2019agem"],
    "ewc": ["kirkpatrick2017ewc", "schwarz2018progress"],
    "si": ["zenke2017si"],
    "mas": ["aljundi2018mas"],
    "lwf": ["li2018lwf"],
    "flip_penalty": ["yan2021positive"],
    "ncm": ["mensink2013ncm"],
    "slda": ["hayes2020slda"],
    "ranpac": ["mcdonnell2023ranpac"],
    "acil": ["zhuang2022acil"],
    "ts_acl": ["fan2024tsacl"],
    "class_il_union": ["vandeven2019scenarios"],
    "bald_mcd": ["houlsby2011bald", "gal2016dropout"],
    "bald_mcp": ["kiyasseh2020alps"],
    "balc_kld": ["kiyasseh2020alps"],
    "entropy": ["gal2017active"],
    "variation_ratio": ["gal2017active"],
    "resnet1d_wang": ["wang2017scratch"],
    "inception_time": ["ismailfawaz2020inceptiontime"],
    "jitter": ["iwana2021augmentation"],
    "scaling": ["iwana2021augmentation"],
    "time_warp": ["um2017augmentation"],
    "lead_dropout": ["iwana2021augmentation"],
}
"""Keys of references.bib by plug-in; schwarz2018progress goes with `ewc_online`."""

ENTRY = re.compile(r"^@\w+\{(\w+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
ADDRESSES = {
    key: f"https://doi.org/{doi[1]}"
    if (doi := re.search(r"\bdoi = \{(.*?)\}", text))
    else f"https://arxiv.org/abs/{arxiv[1]}"
    for key, text in ENTRY.findall((PAGE.parents[1] / "references.bib").read_text("utf-8"))
    if (arxiv := re.search(r"\beprint = \{(.*?)\}", text)) or "doi =" in text
}

TEXT = """# Fields, options and plug-ins

`python docs/reference/generate.py` made this page from the declarations in the code.

A field or option is a keyword of `RunConfig`, an axis of a search space, a value of `--set` and
`--where`, and a column of `runs`. A field without a default here takes the value of the CLOPS paper
for the data set and scenario. [Training](../training.md) and [Options](../own_method.md#options)
have examples.

Each states what it decides, and whether it changes the cost:

| decides | of two runs that differ in it |
| --- | --- |
| data, tasks, training | reports do not compare their methods |
| method | it is a part of the methods that reports compare |
| draw | `seed`, `split_seed` and `split` repeat a configuration; `weight_seed` draws other weights |
| evaluation | only what is measured differs |
| cost: yes | `plan` does not estimate the time of one from that of the other |
"""

NUMBERS = {int: "whole number", float: "number"}
SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}


def values_of(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Describe the values that a field or option takes."""
    if get_origin(annotation) is Annotated:
        annotation, *within = get_args(annotation)
        metadata = [*metadata, *(each for it in within for each in getattr(it, "metadata", [it]))]
    if annotation in NUMBERS:
        said = [f"{SIGNS[name]} {limit:g}" for name, limit in bounds_of(metadata).items() if abs(limit) < LARGEST]
        return f"{NUMBERS[annotation]} {', '.join(said)}"
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{it}`" for it in get_args(annotation))
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        if get_origin(inner) is tuple:
            return "list of lists"
        return "list of names" if inner is str else "list of positions"
    given = [it for it in get_args(annotation) if it is not NoneType]
    if given:
        return ", ".join(values_of(it, metadata) for it in given)
    return {str: "name", bool: "true, false"}.get(annotation, annotation.__name__)


def default_of(value: Any) -> str:
    """Describe a default value."""
    if value is None or callable(value) or repr(value).startswith("PydanticUndefined"):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}`"


def facts_in_words(name: str) -> tuple[str, str]:
    """Describe what a field or option decides, and whether it changes the cost."""
    facts = facts_of(name)
    return facts.decides, "" if facts.equal_cost else "yes"


def users_of(name: str) -> str:
    """Name the built-in plug-ins that use an option."""
    return ", ".join(f"`{owner.split()[1][1:-1]}`" for owner in sorted(OPTIONS.owners(name)))


def options_in(options: Iterable[str]) -> str:
    """Name options."""
    return ", ".join(f"`{it}`" for it in options)


def idea_of(kind: str, member: Any) -> str:
    """Return what a plug-in does: the first line about its file for methods, about itself for others."""
    described = sys.modules[member.__module__] if kind == "strategy" else member
    said = (inspect.getdoc(described) or "").split("\n")[0].removeprefix("Return ")
    return in_page(said)


def sources_of(name: str) -> str:
    """Return links to the papers of a plug-in, by their keys in references.bib."""
    return ", ".join(f"[{key}]({ADDRESSES[key]})" for key in CITE.get(name, ()))


def in_page(text: str) -> str:
    """Return text as a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def table(header: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    names = header.split(", ")
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def page() -> str:
    """Return the text of the page."""
    fields = (
        (
            f"`{name}`",
            default_of(field.default),
            values_of(field.annotation, field.metadata),
            *facts_in_words(name),
            in_page(field.description or ""),
        )
        for name, field in RunConfig.model_fields.items()
    )
    options = (
        (
            f"`{name}`",
            default_of(it.default),
            values_of(it.annotation, it.metadata),
            users_of(name),
            *facts_in_words(name),
            in_page(it.description),
        )
        for name, it in sorted(OPTIONS.items())
        if name in BUILT_IN
    )
    parts = [TEXT, "## Fields\n", table("field, default, values, decides, cost, meaning", fields)]
    parts += ["## Built-in options\n", table("option, default, values, used by, decides, cost, meaning", options)]
    for kind, title in KINDS.items():
        registry = REGISTRIES[kind]
        members = [
            [
                f"`{name}`",
                idea_of(kind, registry[name]),
                sources_of(name),
                options_in(registry.declaration(name).options),
            ]
            for name in registry
            if name not in registry.added
        ]
        parts += [f"## {title}\n", table(f"`{kind}`, idea, cite, options", members)]
    return "\n".join(parts)


BEGIN, END = "<!-- generated list -->\n", "<!-- end of generated list -->\n"
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: ([\w.]+)\n((?:   :.*\n)*)", re.MULTILINE)


def first_sentence(documented: Any) -> str:
    """Return the first line of a docstring, as a cell of a table."""
    said = (inspect.getdoc(documented) or "").split("\n\n")[0].replace("\n", " ")
    return in_page(said.replace("``", "`").removesuffix("::"))


def members_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public functions and classes that a page about a module shows."""
    for name in getattr(module, "__all__", vars(module)):
        member = vars(module)[name]
        imported = getattr(member, "__module__", "") != module.__name__
        if name.startswith("_") or not callable(member) or (imported and not hasattr(module, "__all__")):
            continue
        yield name, member


def documented_in(text: str) -> Iterator[tuple[str, Any]]:
    """Yield what the directives of a page document: name and object."""
    for kind, name, options in DIRECTIVE.findall(text):
        found = pydoc.locate(name)
        if found is None:
            raise RuntimeError(f"{name}: there is no such object")
        if kind != "module":
            yield name.rpartition(".")[2], found
        elif ":no-members:" not in options:
            yield from members_of(found)


def commands_of(group: click.Group) -> Iterator[tuple[str, str]]:
    """Yield the commands of a group with a sentence each."""
    for name, command in group.commands.items():
        yield f"{group.name} {name}", command.get_short_help_str(limit=400)


def list_of_commands() -> str:
    """Return the table of all commands, with the name of a section beside its first command."""
    rows = []
    for section, commands in SECTIONS.items():
        shown = section
        for command in commands:
            found = [(str(command.name), command.get_short_help_str(limit=400))]
            if isinstance(command, click.Group):
                found = list(commands_of(command))
            for name, said in found:
                rows.append((shown, f"`{name}`", in_page(said)))
                shown = ""
    return table("for, command, effect", rows)


def with_list(path: Path, made: str) -> str:
    """Return the text of a page with a fresh list."""
    before, rest = path.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{made}{END}{after}"


def pages() -> dict[Path, str]:
    """Return the text of every generated page, and of every page with a generated list, by file."""
    docs = PAGE.parents[1]
    found = {PAGE: page(), docs / "commands.md": with_list(docs / "commands.md", list_of_commands())}
    for path in sorted((docs / "api").glob("*.md")):
        rows = [(f"`{name}`", first_sentence(member)) for name, member in documented_in(path.read_text("utf-8"))]
        if rows:
            found[path] = with_list(path, table("name, meaning", rows))
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
