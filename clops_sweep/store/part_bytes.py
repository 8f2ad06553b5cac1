"""The bytes of a part: a Parquet file, sealed with a digest of all of them.

A part of many runs has a second digest, of its footer alone, so that a few of its rows can be read without the rest:
Parquet has checksums of pages, and none of the footer that says what the pages hold.
"""

from __future__ import annotations

import hashlib
import re

import pyarrow as pa

_SEAL = b"sha256 of place and bytes: "
UNSEALED = (_SEAL + b"0" * 64).decode()
"""What a file has among its metadata, under any key, before it is sealed."""

FORMAT = 3
"""Version of the parts that this version writes. The ids of their runs follow from the config as 0.3 reads it."""

FORMAT_MARK = f"format {FORMAT} of clops-sweep's parts"
"""What a file has among its metadata, under any key. Parts of 0.2 lack it."""

_FORMAT_OF_0_2 = 2
_FORMAT_MARK = re.compile(rb"format (\d+) of clops-sweep's parts")

_FOOTER, _MAGIC = 8, b"PAR1"
"""A Parquet file ends with its footer, four bytes for the footer's length, and four that all such files end with."""

_OF_FOOTER = b"sha256 of place and footer: "
TAIL = 2**16
"""Bytes at the end of a file that mostly contain all of its footer."""


def sealed(content: pa.Buffer, place: str) -> bytes:
    """Return a file with a SHA-256 of its place and all its bytes where `UNSEALED` was left for it.

    Before its footer, where no reader of Parquet looks, it gets a digest of the footer.

    Args:
        content: the file.
        place: where it is going to be.
    """
    data = memoryview(content)
    footer = _footer_at(data)
    of_footer = _OF_FOOTER + _digest(place, data[footer:])
    at = footer + bytes(data[footer:]).rindex(_SEAL)
    pieces: list[bytes | memoryview] = [data[:footer], of_footer, data[footer:at], data[at + len(UNSEALED) :]]
    return b"".join((*pieces[:3], _SEAL + _digest(place, *pieces), pieces[3]))


def check_seal(content: pa.Buffer, place: str) -> None:
    """Sees that a file is what `sealed` has made, byte for byte, and lies where it was written.

    Raises:
        ArrowInvalid: it is not.
    """
    data = memoryview(content)
    footer = _footer_at(data)
    at = footer + bytes(data[footer:]).rfind(_SEAL)
    if at < footer:
        raise pa.ArrowInvalid("it has no digest: it is cut short, or something else has written it")
    end = at + len(UNSEALED)
    if data[at + len(_SEAL) : end] != _digest(place, data[:at], data[end:]):
        raise pa.ArrowInvalid("it is not what was written there")


def is_sealed(content: pa.Buffer) -> bool:
    """Whether a file says that it is sealed; earlier versions sealed parts alone."""
    return _SEAL in content.to_pybytes()


def format_of(tail: pa.Buffer | bytes) -> int:
    """Return the format version in the footer of a file.

    Args:
        tail: the file, or its end with all of the footer.
    """
    data = memoryview(tail)
    found = _FORMAT_MARK.search(data[_footer_at(data) :])
    return int(found[1]) if found else _FORMAT_OF_0_2


def tail_length(tail: bytes) -> int:
    """How many bytes at the end of a file its footer and the digest of the footer take."""
    footer = int.from_bytes(tail[-_FOOTER:-4], "little") if tail[-4:] == _MAGIC else 0
    return len(_OF_FOOTER) + 2 * hashlib.sha256().digest_size + footer + _FOOTER


def has_checked_footer(tail: bytes, place: str) -> bool:
    """Whether the end of a file has a digest of its footer, which is right; earlier versions wrote none.

    The seal is no part of the digest: it covers the digest. Nothing that a reader makes use of depends on it.

    Args:
        tail: the last bytes of the file, at least `tail_length`.
        place: where it is.

    Raises:
        ArrowInvalid: the footer is not what was written.
    """
    footer = _footer_at(memoryview(tail))
    mark = footer - 2 * hashlib.sha256().digest_size
    begin = mark - len(_OF_FOOTER)
    if begin < 0 or tail[begin:mark] != _OF_FOOTER:
        return False
    at = tail.rfind(_SEAL, footer)
    unsealed = tail[footer:at] + UNSEALED.encode() + tail[at + len(UNSEALED) :]
    if at < footer or tail[mark:footer] != _digest(place, unsealed):
        raise pa.ArrowInvalid("its footer is not what was written there")
    return True


def _footer_at(data: memoryview) -> int:
    """Where the footer begins; the end of what cannot be a Parquet file."""
    length = int.from_bytes(data[-_FOOTER:-4], "little")
    return len(data) - _FOOTER - length if data[-4:] == _MAGIC and length + _FOOTER <= len(data) else len(data)


def _digest(place: str, *pieces: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(place.encode())
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest().encode()
