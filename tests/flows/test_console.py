"""Messages fit a terminal; in a log they stay lines that can be searched."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.runtime.console import WIDTH, wrapped


class Stream(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


WORDS = st.lists(st.text("abc-:/", min_size=1, max_size=120), min_size=1, max_size=60)


@pytest.mark.parametrize("terminal", [False, True])
@given(words=WORDS, indent=st.sampled_from(["", "  "]))
def test_message__has_its_words_in_lines_that_fit__in_a_log_but_for_the_first(
    terminal, words, indent
):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stderr", Stream(terminal))
        message = indent + " ".join(words)
        first, *lines = wrapped(f"{message}\n{message}").split("\n")
    assert " ".join([first, *lines]).split() == [*words, *words]
    assert all(
        len(line) <= WIDTH or len(line.split()) == 1 for line in [first, *lines][not terminal :]
    )
    assert first.startswith(indent)
    assert terminal or first == message


@pytest.mark.parametrize("terminal", [False, True])
@given(text=st.text())
def test_message__has_no_character_that_a_terminal_acts_on(terminal, text):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stderr", Stream(terminal))
        assert all(one.isprintable() for one in wrapped(text).replace("\n", ""))
