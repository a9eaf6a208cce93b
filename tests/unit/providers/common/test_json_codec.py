"""Stored JSON is decoded as the standard library decodes it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsjca.providers.common.codec import from_json

SPACES = st.text(" \t\r\n", max_size=3)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()), SPACES, SPACES)
def test_spaces_around_it_mean_nothing(value, before, after):
    assert from_json(before + json.dumps(value) + after) == value


@pytest.mark.parametrize("text", ["", " ", '{"a":1', '{"a":1}{', '{"a":1} x', "{}{}", "x{}"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(json.JSONDecodeError):
        from_json(text)
