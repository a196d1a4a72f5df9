/** Runs of Statewright as OpenTelemetry spans. */
export {
  type OtelAttributes,
  type OtelSpan,
  type OtelSpanStart,
  type OtelTracerOptions,
  otelTracer,
  schemaUrl,
} from "./otel-tracer.ts";
