"""Reading of an app directory: files, TOML, file references, typed values."""
