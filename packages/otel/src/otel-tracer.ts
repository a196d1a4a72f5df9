/** OpenTelemetry as the tracer of runs: what `traceRun` says of agents, models and tools becomes spans of its API. */
import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";

/** Where the names of the conventions for generative AI are described, by their version. */
export const schemaUrl = "https://opentelemetry.io/schemas/1.41.0";

/** What `otelTracer` takes. */
export interface OtelTracerOptions {
  /** Makes the spans. Default: the tracer `statewright` of the provider that is registered when a span begins. */
  readonly tracer?: Tracer;
}

/** A span that has begun, as `traceRun` sees it; `span` is the one of OpenTelemetry. */
export interface OtelSpan {
  readonly span: Span;
  readonly set: (attributes: OtelAttributes) => void;
  readonly fail: (type: string) => void;
  readonly end: (at: number) => void;
}

/** Attributes as `traceRun` gives them. */
export type OtelAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A span about to begin; times are milliseconds since the epoch. */
export interface OtelSpanStart {
  readonly name: string;
  readonly kind: "client" | "internal";
  readonly attributes: OtelAttributes;
  readonly at: number;
  readonly parent: OtelSpan | undefined;
}

/**
 * The tracer for `traceRun`. The span of an agent stands in the span that is active where its run was started, such as that of
 * a request to a server. Without a registered provider nothing is recorded.
 */
export function otelTracer({ tracer }: OtelTracerOptions = {}): {
  readonly startSpan: (start: OtelSpanStart) => OtelSpan;
} {
  return {
    startSpan: ({ name, kind, attributes, at, parent }) => {
      const made = tracer ?? trace.getTracerProvider().getTracer("statewright", undefined, { schemaUrl });
      const outside = context.active();
      const span = made.startSpan(
        name,
        {
          kind: kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL,
          attributes: plain(attributes),
          startTime: at,
        },
        parent === undefined ? outside : trace.setSpan(outside, parent.span),
      );
      return {
        span,
        set: (more) => void span.setAttributes(plain(more)),
        fail: (type) => {
          span.setAttribute("error.type", type);
          span.setStatus({ code: SpanStatusCode.ERROR, message: type });
        },
        end: (time) => span.end(time),
      };
    },
  };
}

/** The API takes lists that it may change. */
function plain(attributes: OtelAttributes): Record<string, string | number | boolean | string[]> {
  const own: Record<string, string | number | boolean | string[]> = {};
  for (const [name, value] of Object.entries(attributes)) own[name] = typeof value === "object" ? [...value] : value;
  return own;
}
