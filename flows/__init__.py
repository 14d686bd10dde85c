"""The application: the koco command, the Prefect flows, sweep files, tables and reports."""
