"""The runs of a store as views of DuckDB, which are the one selection and the one best."""
