"""File operations, local or in an object store, and hashes of content."""
