"""The contract between processes: versioned requests, responses and signed envelopes."""
