"""Files, paths and object stores: everything that touches a disk."""
