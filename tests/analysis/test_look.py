"""`clops-sweep data look`: one page on a prepared data set."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from clops_sweep.analysis.look import stacked
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import prepare
from tests.data.declared_files import declare, forget, waves

BODY = """
@dataset("own", files=["x.npy"])
def own(root):
    x = np.load(root / "x.npy")
    return Recordings(x, 100, ("I", "<b>"), {unit}, [0, 1] * 10, ("a", "b & c"), {people}, window_seconds=2)
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def _page(tmp_path: Path, x: np.ndarray, unit: str = "'mV'", people: str = "range(20)") -> str:
    np.save(tmp_path / "x.npy", x)
    declare(tmp_path / "space.py", BODY.format(unit=unit, people=people))
    root = tmp_path / "prepared"
    prepare("own", prepared_root=root, data_root=tmp_path, workers=1)
    given = ["data", "look", "own", "--prepared-root", str(root), "--data-root", str(tmp_path), "-o"]
    done = CliRunner().invoke(command, [*given, str(tmp_path / "own.html")])
    assert done.exit_code == 0, done.output
    return (tmp_path / "own.html").read_text()


def test_the_page_has_counts_and_frames_of_each_class(tmp_path: Path) -> None:
    page = _page(tmp_path, waves(20, 2, 400))
    assert "40 frames of 20 people: 2 x 200 samples, 2 s at 100 Hz, in mV" in page
    assert re.search(r"<th>b &amp; c</th>\s*<td>12 \(6\)</td>\s*<td>4 \(2\)</td>\s*<td>4 \(2\)</td>", page)
    assert "&lt;b&gt;" in page
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert page.count('<div class="wide" tabindex="0"><table') == page.count("<table"), "each is scrolled by itself"
    images = re.findall(r'base64,([^"]+)" alt="12 frames of class', page)
    assert len(images) == 2
    for image in images:
        (tmp_path / "image.png").write_bytes(base64.b64decode(image))
        with Image.open(tmp_path / "image.png") as opened:
            assert opened.size[0] > 500


def test_channels_are_drawn_one_above_another() -> None:
    signal = np.stack([np.linspace(5, 6, 50), np.full(50, 3.0), np.linspace(-2, 2, 50)])
    heights = stacked(signal, is_of_one_unit=True)
    for row, channel in zip(heights, (2, 1, 0), strict=True):
        assert channel / 3 <= row.min() <= row.max() <= (channel + 1) / 3
    spans = np.ptp(heights, axis=1)
    np.testing.assert_allclose(spans / spans[2], [1 / 4, 0, 1])  # one scale
    np.testing.assert_allclose(np.ptp(stacked(signal, is_of_one_unit=False), axis=1), [0.3, 0, 0.3])
