"""The program of a stand-in provider; Terraform starts it, and its name says which one it is."""

import sys
from pathlib import Path

from tf import provider, runner

from tests.support.stand_ins.servicer import StandIn


def main() -> None:
    """Serve one provider until Terraform has had enough."""
    name = Path(sys.argv[0]).name.removeprefix("terraform-provider-").partition("_")[0]
    # The library's runner does the handshake and TLS; what it would serve is replaced.
    provider.ProviderServicer = lambda _: StandIn(name)
    runner.run_provider(name, sys.argv)


if __name__ == "__main__":
    main()
