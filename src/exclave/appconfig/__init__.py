"""The app directory: read it, check it, and understand what depends on what."""
