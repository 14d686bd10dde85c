"""The worker's side of a sweep: advance a cohort of runs over a stream, checkpoint it, and write
its result file.
"""
