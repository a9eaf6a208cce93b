"""The page of capabilities, and the table of what each broker redelivers, are what the data says."""

from dataclasses import fields

import capability_table

from jmsjca.spi import Capabilities
from tests.support import settlement_table


def test_the_page_is_up_to_date():
    assert capability_table.PAGE.read_text() == capability_table.page(), "python -m tests.support.capability_table"


def test_every_capability_has_a_meaning():
    assert list(capability_table.meanings()) == [field.name for field in fields(Capabilities)]
    assert all(capability_table.meanings().values())


def test_the_table_of_redeliveries_is_up_to_date():
    written = settlement_table.PAGE.read_text()
    assert settlement_table.page(written) == written, "python -m tests.support.settlement_table"
    assert settlement_table.table() in written


def test_each_broker_has_a_line():
    brokers = [broker.name for group in capability_table.PROTOCOLS.values() for broker in group]
    assert len(settlement_table.table().splitlines()) == 2 + 1 + len(brokers)
