#!/usr/bin/env bash
# fit-tool 0.9.16: an HRV message with fewer intervals than the one before is filled with RR intervals of 0 s.
#
# Guess: HrvMessage().time = [0.9] after a message of two intervals is written as one interval. The rest of the message
#        is the invalid value of the FIT protocol, 65,535, which readers return as None, or a second definition is made.
# Seen:  the rest is 0, a valid value. fitparse, fitdecode, Garmin's SDK and fit-tool itself return intervals of 0.0 s,
#        without a warning. A message with more intervals than the one before gets its own definition, and is right.
# Means: a second of sport has one to three beats, so a file gets an interval of 0 s every few seconds. They are no
#        beats: the mean interval is too short, and RMSSD is 22 times as large. Remove zeros after reading, or fill each
#        message up with 65.535 s before writing.
#
# Output seen:
#   written: [[0.85, 0.87], [0.9], [0.86, 0.88], [0.89]]
#   fitparse: [[0.85, 0.87], [0.9, 0.0], [0.86, 0.88], [0.89, 0.0]]
#   fitdecode: [[0.85, 0.87], [0.9, 0.0], [0.86, 0.88], [0.89, 0.0]]
#   garmin-fit-sdk: [[0.85, 0.87], [0.9, 0.0], [0.86, 0.88], [0.89, 0.0]]
#   fit-tool: [[0.85, 0.87], [0.9, 0.0], [0.86, 0.88], [0.89, 0.0]]
#   RMSSD: 0.026 s written, 0.579 s read
#   filled up with 65.535: [[0.85, 0.87], [0.9, None], [0.86, 0.88], [0.89, None]]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q fit-tool==0.9.16 fitparse==1.2.0 fitdecode==0.11.0 garmin-fit-sdk==21.218.0
env/bin/python - <<'PYTHON'
import warnings

import fitdecode
import fitparse
from fit_tool.fit_file import FitFile
from fit_tool.fit_file_builder import FitFileBuilder
from fit_tool.profile.messages.file_id_message import FileIdMessage
from fit_tool.profile.messages.hrv_message import HrvMessage
from fit_tool.profile.profile_type import FileType, Manufacturer
from garmin_fit_sdk import Decoder, Stream


def write(path, messages):
    """Write an activity with one HRV message for each list of intervals in seconds."""
    builder = FitFileBuilder(auto_define=True)
    head = FileIdMessage()
    head.type, head.manufacturer, head.product = FileType.ACTIVITY, Manufacturer.DEVELOPMENT.value, 0
    head.serial_number, head.time_created = 1, 1_577_872_800_000
    builder.add(head)
    for intervals in messages:
        message = HrvMessage()
        message.time = list(intervals)
        builder.add(message)
    builder.build().to_file(path)


def by_fitparse(path):
    return [list(message.get_value("time")) for message in fitparse.FitFile(path).get_messages("hrv")]


def by_fitdecode(path):
    with fitdecode.FitReader(path) as frames:
        data = [frame for frame in frames if frame.frame_type == fitdecode.FIT_FRAME_DATA and frame.name == "hrv"]
    return [list(frame.get_value("time")) for frame in data]


def by_garmin(path):
    messages, errors = Decoder(Stream.from_file(path)).read()
    assert not errors
    return [message["time"] for message in messages["hrv_mesgs"]]


def by_fit_tool(path):
    messages = [record.message for record in FitFile.from_file(path).records]
    return [list(message.time) for message in messages if isinstance(message, HrvMessage)]


def rmssd(messages):
    intervals = [interval for message in messages for interval in message]
    squares = [(second - first) ** 2 for first, second in zip(intervals, intervals[1:])]
    return (sum(squares) / len(squares)) ** 0.5


written = [[0.85, 0.87], [0.9], [0.86, 0.88], [0.89]]
print(f"written: {written}")
with warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always")
    write("beats.fit", written)
    readers = {
        "fitparse": by_fitparse,
        "fitdecode": by_fitdecode,
        "garmin-fit-sdk": by_garmin,
        "fit-tool": by_fit_tool,
    }
    read = {name: reader("beats.fit") for name, reader in readers.items()}
assert not [warning for warning in raised if issubclass(warning.category, UserWarning)]
for name, messages in read.items():
    print(f"{name}: {messages}")
print(f"RMSSD: {rmssd(written):.3f} s written, {rmssd(read['fitparse']):.3f} s read")
write("filled.fit", [[0.85, 0.87], [0.9, 65.535], [0.86, 0.88], [0.89, 65.535]])
filled = by_fitparse("filled.fit")
print(f"filled up with 65.535: {filled}")
assert filled == [[0.85, 0.87], [0.9, None], [0.86, 0.88], [0.89, None]]
for messages in read.values():
    assert messages == [[0.85, 0.87], [0.9, 0.0], [0.86, 0.88], [0.89, 0.0]], "this has changed"
PYTHON
