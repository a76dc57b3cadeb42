"""Blob stores: immutable bytes under a key, in files, in S3, or in memory."""
