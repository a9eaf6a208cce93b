"""The page of capabilities is what the data says."""

from dataclasses import fields

import capability_table

from jmsjca.spi import Capabilities


def test_the_page_is_up_to_date():
    assert capability_table.PAGE.read_text() == capability_table.page(), "python -m tests.support.capability_table"


def test_every_capability_has_a_meaning():
    assert list(capability_table.meanings()) == [field.name for field in fields(Capabilities)]
    assert all(capability_table.meanings().values())
