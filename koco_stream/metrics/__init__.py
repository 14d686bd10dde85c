"""Metrics of a run's predictions, computed in one pass."""

from koco_stream.metrics.declared import METRICS, Metric, check_name, possible
from koco_stream.metrics.measurement import SEGMENT, Measurement, Metered, measurement_bytes

__all__ = [
    "METRICS",
    "SEGMENT",
    "Measurement",
    "Metered",
    "Metric",
    "check_name",
    "measurement_bytes",
    "possible",
]
