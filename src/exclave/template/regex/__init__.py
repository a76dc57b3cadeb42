"""Regular expressions with Go's syntax and semantics, in time linear in the text."""
