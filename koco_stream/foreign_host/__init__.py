"""The process of another library's learner, row by row; it imports little but that library."""
