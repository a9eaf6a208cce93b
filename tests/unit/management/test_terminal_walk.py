"""A person mends a message and a listener at a terminal, over an embedded broker."""

from terminal_walk import walk


def test_a_poison_message_is_found_mended_and_processed_at_a_terminal(monkeypatch, tmp_path):
    walk(monkeypatch, tmp_path, f"embedded://{tmp_path}/broker.db", "orders")
