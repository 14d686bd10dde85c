"""From a source to a dataset: parts, facts, transformation, shards and manifest."""
