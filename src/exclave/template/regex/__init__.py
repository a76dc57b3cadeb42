"""Regular expressions with Go's syntax and rules, in time that grows with the text only."""
