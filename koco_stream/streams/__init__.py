"""A prepared dataset as rows in order: manifest, orders, the shard cache, rows, the reader."""
