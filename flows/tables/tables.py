"""Rows in groups."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Key = TypeVar("Key")
T = TypeVar("T")


def grouped(items: Iterable[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    groups: dict[Key, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
