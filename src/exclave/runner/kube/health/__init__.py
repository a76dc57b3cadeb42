"""Whether a part works after its rollout: its workloads, and probes of the app."""
