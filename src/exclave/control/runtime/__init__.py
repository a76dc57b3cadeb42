"""What one server keeps in memory; `Deps` holds one of each."""
