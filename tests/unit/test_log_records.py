"""Log records have one line, whatever the values in them are; those that need no change keep their arguments."""

import logging
import uuid

import pytest

from jmsjca.errors import JMSError
from jmsjca.log_records import get_logger, one_line


@pytest.fixture
def logger():
    return get_logger(f"jmsjca.test.{uuid.uuid4().hex}")


def test_a_value_with_a_line_break_forges_no_record(logger, caplog):
    logger.warning("%s failed: %s", "queue:a\nCRITICAL all is lost", JMSError("\x1b[2J"))
    [record] = caplog.records
    assert record.getMessage() == r"queue:a\nCRITICAL all is lost failed: \x1b[2J"


def test_a_value_is_no_template(logger, caplog):
    logger.warning("%s and\n%d", "%s %d", 7)
    assert [record.getMessage() for record in caplog.records] == [r"%s %d and\n7"]


def test_a_printable_record_keeps_its_template_and_its_arguments(logger, caplog):
    logger.warning("%s has %d of %.1f", "Zürich \u2013 東京", 7, 0.5)
    [record] = caplog.records
    assert (record.msg, record.args) == ("%s has %d of %.1f", ("Zürich \u2013 東京", 7, 0.5))


def test_a_long_value_is_cut_and_what_follows_it_remains(logger, caplog):
    logger.warning("%s failed in %s", "x" * 1_000_000, "orders")
    logger.warning("failed: %s", JMSError("y" * 1_000_000))
    first, second = (record.getMessage() for record in caplog.records)
    assert first == f"{'x' * 1024} failed in orders"
    assert (len(second), second[-1]) == (4096, "\N{HORIZONTAL ELLIPSIS}")


def test_the_traceback_of_an_error_remains(logger, caplog):
    logger.error("failed\n", exc_info=ValueError("a\nb"))
    [record] = caplog.records
    assert record.getMessage() == r"failed\n"
    assert str(record.exc_info[1]) == "a\nb"


def test_a_value_without_a_text_is_left_to_the_handlers(logger):
    class SilentError(Exception):
        def __str__(self):
            raise TypeError

    record = logger.makeRecord(logger.name, logging.INFO, "", 0, "failed: %s", (SilentError(),), None)
    assert logger.filter(record)
    assert len(record.args) == 1


def test_a_logger_has_one_filter_however_often_it_is_asked_for(logger):
    assert get_logger(logger.name) is logger
    assert len(logger.filters) == 1
    assert logging.getLogger(logger.name) is logger


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain \\ 'text'", "plain \\ 'text'"), ("a\r\nb\0", r"a\r\nb\x00"), ("\u202e\ud800", r"\u202e\ud800"), ("", "")],
)
def test_control_characters_are_escaped_and_others_stay(text, shown):
    assert one_line(text) == shown


@pytest.mark.parametrize("text", ["x" * 11, "\n" * 6, "\n" * 1_000_000])
def test_a_line_is_not_longer_than_its_limit(text):
    assert len(one_line(text, 10)) == 10
    assert one_line(text, 10).endswith("\N{HORIZONTAL ELLIPSIS}")
