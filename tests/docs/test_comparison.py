"""Each row of the comparison with FastStream says yes, or no with a reason."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "comparison.md").read_text()


def rows():
    section = PAGE.split("## FastStream, feature by feature\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [row.split(" | ") for row in found[2:]]  # without the head


def test_each_row_is_yes_or_has_its_reason():
    assert len(rows()) > 35
    for feature, _, ours in rows():
        assert ours == "yes" or re.match(r"yes[:, (]|no: \w", ours), feature
        for missing in re.findall(r"(?:: |; )(no\b.{0,10})", ours):
            assert re.match(r"no, \w", missing), f"{feature}: {missing}"
