"""What a user can do wrong, and how it is told: the place, what was found there, and the remedy."""


class WrongInput(ValueError):
    """The input is wrong; nothing was changed. The command line prints it and ends with exit status
    2.
    """


class WrongType(WrongInput, TypeError):
    """The input is of a type that has no numbers in it."""


class StoreUnavailable(OSError):
    """An object store does not answer, refuses access or has no such bucket: exit status 1, with
    the remedy.
    """


def nearest(word: str, words: list[str]) -> str:
    """`; did you mean 'x'?` for the word most like `word`, or the list of what there is."""
    from difflib import get_close_matches

    close = get_close_matches(word, words, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are: {', '.join(sorted(words))}"
