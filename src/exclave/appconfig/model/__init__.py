"""The app directory format: file kinds, fields and the typed app."""
