"""The bytes of a part: a Parquet file, sealed with a digest of all its bytes.

A part of many runs has a second digest, of its footer alone, so that some of its rows can be verified without reading
the rest: Parquet has checksums for pages, but none for the footer.
"""

from __future__ import annotations

import hashlib
import re

import pyarrow as pa

_SEAL = b"sha256 of place and bytes: "
UNSEALED = (_SEAL + b"0" * 64).decode()
"""Placeholder for the digest in the metadata of a file that is not sealed yet."""

FORMAT = 3
"""Format version of the parts that this version writes."""

FORMAT_MARK = f"format {FORMAT} of clops-sweep's parts"
"""Mark of the format version in a file's metadata. Parts of version 0.2 lack it."""

_FORMAT_OF_0_2 = 2
_FORMAT_MARK = re.compile(rb"format (\d+) of clops-sweep's parts")

_FOOTER, _MAGIC = 8, b"PAR1"
"""Length of the end of a Parquet file: the footer's length (four bytes) and a magic number (four bytes)."""

_OF_FOOTER = b"sha256 of place and footer: "
TAIL = 2**16
"""Bytes at the end of a file that usually contain the whole footer."""


def sealed(content: pa.Buffer, place: str) -> bytes:
    """Return a file with `UNSEALED` replaced by a SHA-256 of its path and all its bytes.

    A digest of the footer is inserted before the footer, where Parquet readers do not look.

    Args:
        content: the file.
        place: the path that it will have.
    """
    data = memoryview(content)
    footer = _footer_at(data)
    of_footer = _OF_FOOTER + _digest(place, data[footer:])
    at = footer + bytes(data[footer:]).rindex(_SEAL)
    pieces: list[bytes | memoryview] = [data[:footer], of_footer, data[footer:at], data[at + len(UNSEALED) :]]
    return b"".join((*pieces[:3], _SEAL + _digest(place, *pieces), pieces[3]))


def check_seal(content: pa.Buffer, place: str) -> None:
    """Check that a file is byte for byte what `sealed` returned, and is at the path that it was written to.

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
    """Return whether a file claims to be sealed; earlier versions sealed only parts."""
    return _SEAL in content.to_pybytes()


def format_of(tail: pa.Buffer | bytes) -> int:
    """Return the format version in the footer of a file.

    Args:
        tail: the file, or its end including the whole footer.
    """
    data = memoryview(tail)
    found = _FORMAT_MARK.search(data[_footer_at(data) :])
    return int(found[1]) if found else _FORMAT_OF_0_2


def tail_length(tail: bytes) -> int:
    """Return the length in bytes of the footer and its digest at the end of a file."""
    footer = int.from_bytes(tail[-_FOOTER:-4], "little") if tail[-4:] == _MAGIC else 0
    return len(_OF_FOOTER) + 2 * hashlib.sha256().digest_size + footer + _FOOTER


def has_checked_footer(tail: bytes, place: str) -> bool:
    """Return whether the end of a file has a digest of its footer; earlier versions wrote none.

    The digest leaves out the seal, since the seal covers the digest.

    Args:
        tail: the last bytes of the file, at least `tail_length`.
        place: the path of the file.

    Raises:
        ArrowInvalid: the footer does not match its digest.
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
    """Return the offset of the footer; the length of the bytes if they are not a Parquet file."""
    length = int.from_bytes(data[-_FOOTER:-4], "little")
    return len(data) - _FOOTER - length if data[-4:] == _MAGIC and length + _FOOTER <= len(data) else len(data)


def _digest(place: str, *pieces: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(place.encode())
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest().encode()
