"""What a page consists of, as plain data: text is text, and never markup, whatever it says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clops_sweep.store.rows import printable


@dataclass(frozen=True)
class Element:
    """An element of HTML, or `Checklist`, `Graph`, `Input` or `Store` of Dash's core components.

    Attributes are called as Dash calls them, with `aria_label` for `aria-label`.
    """

    kind: str
    children: tuple[Element | str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(it if isinstance(it, str) else it.text for it in self.children)

    def find(self, kind: str, **attributes: Any) -> list[Element]:
        """The elements of a kind in it, itself included, whose attributes have these values."""
        here = self.kind == kind and all(self.attributes.get(name) == value for name, value in attributes.items())
        found = [self] if here else []
        for child in self.children:
            found += child.find(kind, **attributes) if isinstance(child, Element) else []
        return found


def element(kind: str, *children: Element | str | None, **attributes: Any) -> Element:
    """An element; children that are None are left out, and what a terminal or a reader would obey is written out."""
    kept = tuple(it if isinstance(it, Element) else printable(it) for it in children if it is not None)
    return Element(kind, kept, {name: value for name, value in attributes.items() if value is not None})


def link(text: str, address: str, said: str = "", **attributes: Any) -> Element:
    """A link to another view; `said` is how it is read out, beginning with its text."""
    return element("A", text, href=address, aria_label=printable(said) if said else None, **attributes)


def hidden(text: str) -> Element:
    """Text for those who hear the page."""
    return element("Span", text, className="unseen")


def notice(text: str) -> Element:
    """A sentence that stands out."""
    return element("P", text[:1].upper() + text[1:], className="notice")


def signature(parts: tuple[Element, ...]) -> str:
    """By which it is seen that nothing has changed."""
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()
