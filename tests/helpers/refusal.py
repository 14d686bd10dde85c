"""What is refused, with its message."""

import pytest

from koco_stream.errors import WrongInput


def refusal(message, work, *given, **more):
    """The whole message with which `work` of what is given is refused; it matches `message`."""
    with pytest.raises(WrongInput, match=message) as refused:
        work(*given, **more)
    return str(refused.value)
