"""From a runner's poll to the end of an execution: offers, claims, leases, results."""
