"""What a worker does: advance a cohort over a stream, save it, and write what came out."""
