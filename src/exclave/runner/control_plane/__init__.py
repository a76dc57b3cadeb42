"""Connection to the control plane: identity, tokens, trust, API calls of an execution."""
