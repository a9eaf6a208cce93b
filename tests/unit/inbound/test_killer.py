"""A message that ends its listener takes no innocent one with it, over the embedded broker in memory and in a file."""

import os
import random
import uuid

import killer
import pytest

WHOLE = os.environ.get("JMSJCA_ALL_CELLS") == "1"
SAMPLE = 3  # of each place
CELLS = {
    "file": killer.cells(["kill", "stop", "close"]),
    "memory": killer.cells(["stop", "close"]),
}
FOUND = killer.Cell("kill", "serial", "single", "3:delete")  # as it was reported
_dice = random.Random(20)
CHOSEN = {
    place: cells if WHOLE else [*([FOUND] if place == "file" else []), *_dice.sample(cells, SAMPLE)]
    for place, cells in CELLS.items()
}


@pytest.mark.parametrize("place", CELLS)
def test_none_but_the_killer_is_moved_or_deleted(place, tmp_path, capsys):
    wrong = []
    for number, cell in enumerate(CHOSEN[place]):
        folder = tmp_path / str(number)
        folder.mkdir()
        url = f"embedded://{folder}/broker.db" if place == "file" else f"embedded://{uuid.uuid4().hex}"
        account = killer.run(url, cell, folder)
        if account.wrong or account.calls != killer.LADDERS[cell.ladder]:  # its count is exact
            wrong.append(f"{cell}: {account.wrong or account}")
    with capsys.disabled():
        total = len(CELLS[place])
        print(f"\nkillers among innocent messages, {place}: {len(CHOSEN[place])} of {total} visited")
    assert not wrong, "\n".join(wrong)
