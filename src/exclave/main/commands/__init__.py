"""The commands that start processes or work on their folders."""
