"""The version of koco-stream."""

__version__ = "0.1.0"
