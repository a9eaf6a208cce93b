"""The programs of other libraries in the guides for migration."""

import re
from pathlib import Path

__all__ = ["programs"]

_PAGES = Path(__file__).parents[2] / "docs" / "migration"


def programs(page, language="py"):
    """Return the blocks of a page that show another library, in their order."""
    text = (_PAGES / f"{page}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
