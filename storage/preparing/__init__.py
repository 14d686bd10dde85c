"""From a source to a dataset: chunks, facts, transformation, shards and manifest."""
