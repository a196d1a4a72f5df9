import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { expect, test } from "vitest";
import { otelTracer } from "../src/index.ts";

function recording() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  return { tracer: otelTracer({ tracer: provider.getTracer("test") }), exporter };
}

test("OpenTelemetry spans have their kind, times, attributes and parent", () => {
  const { tracer, exporter } = recording();
  const agent = tracer.startSpan({
    name: "invoke_agent desk",
    kind: "internal",
    attributes: { "gen_ai.agent.name": "desk" },
    at: 1_700_000_000_000,
    parent: undefined,
  });
  const model = tracer.startSpan({
    name: "chat large",
    kind: "client",
    attributes: {},
    at: 1_700_000_000_010,
    parent: agent,
  });
  model.set({ "gen_ai.response.finish_reasons": ["stop"], "gen_ai.usage.input_tokens": 7 });
  model.end(1_700_000_000_250);
  agent.end(1_700_000_000_300);
  const [inner, outer] = exporter.getFinishedSpans();
  expect([inner?.name, inner?.kind, inner?.startTime, inner?.endTime]).toEqual([
    "chat large",
    SpanKind.CLIENT,
    [1_700_000_000, 10_000_000],
    [1_700_000_000, 250_000_000],
  ]);
  expect(inner?.attributes).toEqual({ "gen_ai.response.finish_reasons": ["stop"], "gen_ai.usage.input_tokens": 7 });
  expect(inner?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId);
  expect([outer?.kind, outer?.attributes, outer?.status.code]).toEqual([
    SpanKind.INTERNAL,
    { "gen_ai.agent.name": "desk" },
    SpanStatusCode.UNSET,
  ]);
});

test("a failure sets the status of its OpenTelemetry span and the error type [FX83]", () => {
  const { tracer, exporter } = recording();
  const span = tracer.startSpan({
    name: "execute_tool pay",
    kind: "internal",
    attributes: {},
    at: 1,
    parent: undefined,
  });
  span.fail("timeout");
  span.end(2);
  expect(exporter.getFinishedSpans()[0]).toMatchObject({
    attributes: { "error.type": "timeout" },
    status: { code: SpanStatusCode.ERROR, message: "timeout" },
  });
});

test("a tracer without a provider records nothing and does not fail", () => {
  const span = otelTracer().startSpan({ name: "x", kind: "internal", attributes: {}, at: 1, parent: undefined });
  span.set({ a: 1 });
  span.end(2);
  expect(span.span.isRecording()).toBe(false);
});
