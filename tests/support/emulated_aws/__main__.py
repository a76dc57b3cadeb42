"""Serve the emulated AWS: `python -m tests.support.emulated_aws PORT`."""

import sys

from moto.server import main

from tests.support.emulated_aws.identities import complete_identities
from tests.support.emulated_aws.networks import complete_networks
from tests.support.emulated_aws.rights import complete_rights
from tests.support.emulated_aws.secrets import add_secrets
from tests.support.emulated_aws.simulation import add_simulation
from tests.support.emulated_aws.templates import complete_templates

if __name__ == "__main__":
    add_secrets()
    add_simulation()
    complete_identities()
    complete_networks()
    complete_rights()
    complete_templates()
    main(["-H", "127.0.0.1", "-p", sys.argv[1]])
