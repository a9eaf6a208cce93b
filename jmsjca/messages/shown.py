"""Foreign text in text forms and errors: short, and on one line."""

__all__ = ["shown"]


def shown(value: object, limit: int = 40) -> str:
    r"""Give the beginning of a text, with a newline as ``\n``, an escape as ``\x1b``, and so on.

    Args:
        value: Shown as its `str`.
        limit: How many characters of it at most; escapes make that up to ten times as many.
    """
    text = str(value)
    cut = repr(text[:limit])[1:-1]
    return f"{cut}…" if len(text) > limit else cut
