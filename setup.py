"""The package's description where it is shown without this folder: the README, whose links to other
files are left out; their texts name the files. Everything else is in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup

README = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
PICTURE = r"!\[[^]]*\]\((?!https:)[^)]+\)\n+"
LINK = r"\[([^]]+)\]\((?!https:)[^)]+\)"
setup(
    long_description=re.sub(LINK, r"\1", re.sub(PICTURE, "", README)),
    long_description_content_type="text/markdown",
)
