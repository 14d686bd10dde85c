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


@given(words=WORDS, indent=st.sampled_from(["", "  "]))
def test_message__on_a_terminal_has_its_words_in_lines_that_fit(words, indent):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stderr", Stream(terminal=True))
        message = indent + " ".join(words)
        lines = wrapped(message).split("\n")
    assert " ".join(lines).split() == words
    assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in lines)
    assert lines[0].startswith(indent)


@given(words=WORDS)
def test_message__in_a_log_is_one_line_and_its_list_is_wrapped(words):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stderr", Stream(terminal=False))
        text = " ".join(words)
        assert wrapped(text) == text
        first, *lines = wrapped(f"{text}\n  {text}").split("\n")
    assert first == text
    assert " ".join(lines).split() == words
    assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in lines)


@pytest.mark.parametrize("terminal", [False, True])
@given(text=st.text())
def test_message__has_no_character_that_a_terminal_acts_on(terminal, text):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stderr", Stream(terminal))
        assert all(one.isprintable() for one in wrapped(text).replace("\n", ""))
