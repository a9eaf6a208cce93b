"""What is read from strace."""

from tests.torture.trace import whole_calls

LINES = """\
11 openat(AT_FDCWD<\\x2f\\x61>, "\\x62", O_RDWR <unfinished ...>
12 write(3<\\x61>, "\\x62", 1) = 1
11 <... openat resumed>|O_CREAT, 0644) = 5<\\x61>
12 +++ exited with 0 +++
"""


def test_calls_that_another_thread_cut_in_two_are_whole():
    """Where nobody noticed, a file was written to that nobody had made."""
    assert list(whole_calls(LINES.splitlines())) == [
        '12 write(3<\\x61>, "\\x62", 1) = 1',
        '11 openat(AT_FDCWD<\\x2f\\x61>, "\\x62", O_RDWR|O_CREAT, 0644) = 5<\\x61>',
        "12 +++ exited with 0 +++",
    ]
