"""Background loops of a runner: poll, renew, heartbeat pace, kill switch."""
