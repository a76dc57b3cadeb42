"""Tools that the runner uses: found, verified, downloaded or built."""
