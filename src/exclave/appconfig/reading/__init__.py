"""Read an app directory: files, TOML, references, positions."""
