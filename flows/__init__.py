"""The application: the koco command (`cli`, `commands`), and one package for each of its tasks.

`runtime` has what they share.
"""
