"""Metrics of a run's predictions: what there is, and how they are computed in one pass."""

from koco_stream.metrics.declared import METRICS, WINDOWED, Metric, possible
from koco_stream.metrics.measurement import Measurement, Metered, measurement_bytes

__all__ = [
    "METRICS",
    "WINDOWED",
    "Measurement",
    "Metered",
    "Metric",
    "measurement_bytes",
    "possible",
]
