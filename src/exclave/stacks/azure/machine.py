"""What both forms know of the runner's machine, its vaults and its registry."""

ADMIN = "exclave"
DISK = "StandardSSD_LRS"
DISK_CACHE = "ReadWrite"
SEAL_DAYS = 90
"""How long a deleted seal can be recovered; the longest that Azure has."""
SECRET_DAYS = 7
GIVEN_CODE = "text/plain"
BLANK = " "
"""What stands for a value that is not given: a secret cannot be empty."""
