"""A person mends a message and a listener at a terminal, over Artemis."""

import uuid

from terminal_walk import walk


def test_a_poison_message_is_found_mended_and_processed_at_a_terminal(monkeypatch, tmp_path, broker_url):
    walk(monkeypatch, tmp_path, broker_url("artemis-amqp"), f"walk.{uuid.uuid4().hex[:12]}")
