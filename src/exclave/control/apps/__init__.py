"""Apps, their config versions, and syncing an app directory."""
