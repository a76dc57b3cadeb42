"""What a job runs: pure functions from a part's definition and facts to its specification.

There is no clock, no database and no network here, so the same arguments give the same
specification anywhere: in a transaction of the control plane, in a test, on a runner.
"""
