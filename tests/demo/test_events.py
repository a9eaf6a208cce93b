import json

import pytest

from jmsjca.demo.events import generate, read_events
from jmsjca.errors import InvalidOptionError

EVENTS = list(generate(5, 1))


def test_the_same_seed_generates_the_same_events():
    assert list(generate(50, 3)) == list(generate(50, 3))
    assert list(generate(50, 3)) != list(generate(50, 4))


@pytest.mark.parametrize("form", ["array", "lines", "csv"])
def test_every_form_of_file_gives_the_same_events(tmp_path, form):
    file = tmp_path / "events"
    if form == "array":
        file.write_text(json.dumps(EVENTS, indent=1))
    elif form == "lines":
        file.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    else:
        rows = [",".join(EVENTS[0])] + [",".join(map(str, event.values())) for event in EVENTS]
        file.write_text("\n".join(rows))
    assert list(read_events(file)) == EVENTS


@pytest.mark.parametrize(
    "text", ["[{]", '{"date": 1}\n', "a,b\n1,2\n", '[{"date": "x", "delay": "late", "distance": 1}]', "[1]"]
)
def test_a_file_of_something_else_is_refused_with_its_name(tmp_path, text):
    file = tmp_path / "events"
    file.write_text(text)
    with pytest.raises(InvalidOptionError, match="events"):
        list(read_events(file))


def test_a_binary_file_is_refused(tmp_path):
    file = tmp_path / "events"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidOptionError, match="cannot be read as events"):
        list(read_events(file))
