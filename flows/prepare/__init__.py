"""The prepare flow: datasets of the catalogue and of files, into a store."""
