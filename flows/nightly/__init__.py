"""The nightly flow: a sweep anew, and what has changed since the accepted one."""
