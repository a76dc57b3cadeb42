"""Worker processes for work whose cost a tenant decides."""
