"""Enrolment by attestation: a machine proves by its cloud whose it is."""
