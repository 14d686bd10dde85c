"""What a store's runs came to: views of DuckDB, which are the one selection and the one best."""
