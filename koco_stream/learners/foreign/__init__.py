"""Learners of other libraries as learners of a sweep, each run in a process of its own."""

from koco_stream.learners.foreign.learner import ForeignLearner, foreign_learner

__all__ = ["ForeignLearner", "foreign_learner"]
