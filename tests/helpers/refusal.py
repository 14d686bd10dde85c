"""What is refused, with its message."""

import pytest

from koco_stream.errors import WrongInput


def refusal(message, work, *given, by=WrongInput, **more):
    """The whole message with which `work` of what is given is refused, by an error of this class;
    it matches `message`.
    """
    with pytest.raises(by, match=message) as refused:
        work(*given, **more)
    return str(refused.value)


def outcome_of(work, *given):
    """What `work` gives, and what it said if it refused."""
    try:
        return work(*given), ""
    except WrongInput as error:
        return None, str(error)
