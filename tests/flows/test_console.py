"""Messages fit a terminal; in a log they stay lines that can be searched."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from flows.runtime.console import WIDTH, wrapped

TERMINAL, LOG = (SimpleNamespace(isatty=lambda said=said: said) for said in (True, False))


@given(
    words=st.lists(st.text("abc-:/", min_size=1, max_size=120), min_size=1, max_size=60),
    indent=st.sampled_from(["", "  "]),
)
def test_message__on_a_terminal_has_its_words_in_lines_that_fit__and_in_a_log_is_one_line(
    words, indent
):
    text = indent + " ".join(words)
    shown, (first, *listed) = wrapped(text, TERMINAL), wrapped(f"{text}\n  {text}", LOG).split("\n")
    assert first == text
    assert shown.startswith(indent)
    for lines in (shown.split("\n"), listed):
        assert " ".join(lines).split() == words
        assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in lines)


@given(text=st.text())
def test_message__has_no_character_that_a_terminal_acts_on(text):
    for stream in (TERMINAL, LOG):
        assert all(one.isprintable() for one in wrapped(text, stream).replace("\n", ""))
