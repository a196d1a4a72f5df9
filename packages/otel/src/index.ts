/** OpenTelemetry tracer for Statewright runs. */
export {
  type OtelAttributes,
  type OtelSpan,
  type OtelSpanStart,
  type OtelTracerOptions,
  otelTracer,
  schemaUrl,
} from "./otel-tracer.ts";
