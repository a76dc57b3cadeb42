"""Child processes: start, isolate, find and kill."""
