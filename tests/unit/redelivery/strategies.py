"""Redelivery policies as hypothesis generates them, with their text forms."""

from hypothesis import strategies as st

from jmsjca.redelivery import Delay, Delete, Move

_NAMES = st.text(st.characters(exclude_characters=";$\n\r\x85\u2028\u2029", exclude_categories=["Cs"]), min_size=1)
_LAST = st.one_of(
    st.just(Delete()),
    st.builds(Move, st.sampled_from(["queue", "topic"]), _NAMES.filter(lambda name: not name[0].isspace())),
)


@st.composite
def ladders(draw, highest=50_000_000):
    """From which index on which action is in force."""
    indexes = sorted(draw(st.sets(st.integers(1, highest), max_size=6)))
    ladder = {index: Delay(draw(st.integers(0, 2147483647))) for index in indexes}
    if indexes and draw(st.booleans()):
        ladder[indexes[-1]] = draw(_LAST)
    return ladder


@st.composite
def printed(draw, ladder):
    """A text for a ladder, with blanks wherever there may be some."""
    blank, blanks = st.sampled_from(["", " ", "\t"]), st.text(" \t\n\r\f\v", max_size=3)
    entries = [f"{index}:{draw(blank)}{_word(action, draw, blank)}" for index, action in ladder.items()]
    text = entries[0] if entries else ""
    for entry in entries[1:]:
        text += f"{draw(blanks)};{draw(blanks)}{entry}"
    return text + draw(st.sampled_from(["", ";", "; ;", " ; "]))


def _word(action, draw, blank):
    if isinstance(action, Delay):
        return str(action.milliseconds)
    if isinstance(action, Delete):
        return "delete"
    return f"move({action.kind}{draw(blank)}:{draw(blank)}{action.name})"
