"""The application: the koco command (`cli`, `commands`), and a folder for each thing that it does;
`runtime` is what they share.
"""
