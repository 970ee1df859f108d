"""Reads the bodies of OTLP's requests with the classes of OpenTelemetry's own package, and prints what they say.

Usage: otlp.py FILE, whose lines are {"path": "/v1/traces", "body": {...}}. Prints one JSON object a span or data point.
OTLP's JSON has ids as hexadecimal digits; Protocol Buffers' own JSON has Base64.
"""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


def with_binary_ids(value):
    if isinstance(value, list):
        return [with_binary_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(item)).decode() if name in ("traceId", "spanId", "parentSpanId")
        else with_binary_ids(item)
        for name, item in value.items()
    }


def attributes(pairs):
    found = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        found[pair.key] = str(getattr(pair.value, kind))
    return found


def spans(body):
    request = json_format.ParseDict(with_binary_ids(body), ExportTraceServiceRequest())
    for resource in request.resource_spans:
        service = attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8)
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                yield {
                    "service": service, "name": span.name, "kind": Span.SpanKind.Name(span.kind),
                    "trace": span.trace_id.hex(), "span": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                    "state": span.trace_state, "attributes": attributes(span.attributes),
                    "error": span.status.message if span.status.code == 2 else "",
                }


def points(body):
    request = json_format.ParseDict(body, ExportMetricsServiceRequest())
    for resource in request.resource_metrics:
        service = attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                assert kind == "gauge" or data.aggregation_temporality == 2
                assert kind != "sum" or data.is_monotonic
                for point in data.data_points:
                    assert point.time_unix_nano > 0
                    assert kind == "gauge" or 0 < point.start_time_unix_nano < point.time_unix_nano
                    value = point.sum if kind == "histogram" else point.as_double
                    buckets = ""
                    if kind == "histogram":
                        bounds = [f" <= {bound}, " for bound in point.explicit_bounds] + [""]
                        buckets = "".join(f"{count}{bound}" for count, bound in zip(point.bucket_counts, bounds))
                        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                        assert sum(point.bucket_counts) == point.count
                    yield {
                        "service": service, "name": metric.name, "kind": kind, "unit": metric.unit, "value": str(value),
                        "attributes": attributes(point.attributes), "start": str(point.start_time_unix_nano),
                        "buckets": buckets,
                    }


for line in open(sys.argv[1], encoding="utf-8"):
    request = json.loads(line)
    for item in spans(request["body"]) if request["path"].endswith("/v1/traces") else points(request["body"]):
        print(json.dumps(item))
