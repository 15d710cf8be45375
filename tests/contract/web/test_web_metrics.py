"""Metrics are what Prometheus reads: names, types, help, labels, numbers whole."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from fixtures.web_hub import Client
from upright.web.metrics import TEXT_FORMAT, sample, written


def test_a_parser_reads_back_what_was_written() -> None:
    odd = 'a "quoted"\\back\nslash'
    samples = {
        "upright_sessions": 2,
        "upright_disk_free_bytes": 123_456_789_012.0,
        sample("upright_hooks_refused_total", source="gh", code=odd): 3.0,
        sample("upright_hooks_refused_total", source="mail", code="b"): 4.0,
    }
    families = {each.name: each for each in text_string_to_metric_families(written(samples))}
    refused = families["upright_hooks_refused"]  # the parser takes _total off a counter's name
    assert refused.type == "counter"
    assert [(one.labels["code"], one.value) for one in refused.samples] == [(odd, 3.0), ("b", 4.0)]
    assert families["upright_sessions"].type == "gauge"
    assert families["upright_sessions"].documentation == "Sessions."
    assert families["upright_disk_free_bytes"].samples[0].value == 123_456_789_012


async def test_a_hub_serves_what_a_parser_reads(client: Client) -> None:
    async with client.session.get(f"{client.url}/metrics") as response:
        assert response.headers["Content-Type"] == f"{TEXT_FORMAT}; charset=utf-8"
        text = await response.text()
    families = {each.name: each for each in text_string_to_metric_families(text)}
    assert families["upright_sessions"].samples[0].value == 2
    assert families["upright_event_streams"].samples[0].value == 0
    assert all(each.documentation for each in families.values())
