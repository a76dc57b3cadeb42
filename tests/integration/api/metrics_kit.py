"""Figures of a site, as a scraper reads them."""

from prometheus_client.parser import text_string_to_metric_families

from tests.integration.api.kit import Site

Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scrape(site: Site) -> Figures:
    """Read all figures, by name and labels."""
    reply = await site.call("GET", "/metrics", "")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }
