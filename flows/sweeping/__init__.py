"""Running a sweep: its file, its checks, its plan, its steps and its progress."""
