/** Adapts OpenTelemetry to the tracer of `traceRun`: spans for agents, models and tools. */
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";

/** Schema URL of the OpenTelemetry semantic conventions for generative AI. */
export const schemaUrl = "https://opentelemetry.io/schemas/1.41.0";

/** Destination of spans. */
export interface OtelTracerOptions {
  /**
   * Tracer that creates the spans. Default: the tracer `statewright` of the provider registered at the start of a
   * span.
   */
  readonly tracer?: Tracer;
}

/** A started span for `traceRun`; `span` is the OpenTelemetry span. */
export interface OtelSpan {
  readonly span: Span;
  /** Sets attributes of the span. */
  readonly set: (attributes: OtelAttributes) => void;
  /** Marks the span as failed, with the error type. */
  readonly fail: (type: string) => void;
  /** Ends the span; `at` is in epoch milliseconds. */
  readonly end: (at: number) => void;
}

/** Span attributes of `traceRun`. */
export type OtelAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Start data of a span; times in milliseconds since the epoch. */
export interface OtelSpanStart {
  readonly name: string;
  readonly kind: "client" | "internal";
  readonly attributes: OtelAttributes;
  readonly at: number;
  readonly parent: OtelSpan | undefined;
}

/**
 * Returns the tracer for `traceRun`. The parent of an agent span is the span active at the start of the run, such as
 * the span of a server request. Without a registered provider no span is recorded.
 */
export function otelTracer({ tracer }: OtelTracerOptions = {}): {
  readonly startSpan: (start: OtelSpanStart) => OtelSpan;
} {
  return {
    startSpan: ({ name, kind, attributes, at, parent }) => {
      const spanTracer = tracer ?? trace.getTracerProvider().getTracer("statewright", undefined, { schemaUrl });
      const activeContext = context.active();
      const span = spanTracer.startSpan(
        name,
        {
          kind: kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL,
          attributes: copyAttributes(attributes),
          startTime: at,
        },
        parent === undefined ? activeContext : trace.setSpan(activeContext, parent.span),
      );
      return {
        span,
        set: (more) => void span.setAttributes(copyAttributes(more)),
        fail: (type) => {
          span.setAttribute("error.type", type);
          span.setStatus({ code: SpanStatusCode.ERROR, message: type });
        },
        end: (time) => span.end(time),
      };
    },
  };
}

/** Copies attributes: the OpenTelemetry API requires mutable arrays. */
function copyAttributes(attributes: OtelAttributes): Record<string, string | number | boolean | string[]> {
  const copy: Record<string, string | number | boolean | string[]> = {};
  for (const [name, value] of Object.entries(attributes)) copy[name] = typeof value === "object" ? [...value] : value;
  return copy;
}
