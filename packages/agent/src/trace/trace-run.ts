/**
 * Traces a run as spans of any tracer: a span for the agent, and a span per model call and tool call, named by the
 * OpenTelemetry semantic conventions for generative AI (version 1.41.0, in development). Created from run events;
 * spans contain no texts, arguments or results.
 */
import type { RunEvent, Usage } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";

/** Version of the OpenTelemetry generative AI conventions. */
export const genAiConventions = "1.41.0";

/** Attributes of a span. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** Started span. */
export interface TracedSpan {
  /** Sets attributes of the span; an attribute that is set twice has its last value. */
  readonly set: (attributes: SpanAttributes) => void;
  /** Marks the span as failed, with the error type. */
  readonly fail: (type: string) => void;
  /** Ends the span; `at` is in epoch milliseconds. */
  readonly end: (at: number) => void;
}

/** Start options of a span. */
export interface SpanStart<Span extends TracedSpan = TracedSpan> {
  readonly name: string;
  readonly kind: "client" | "internal";
  readonly attributes: SpanAttributes;
  /** Start time in epoch milliseconds. */
  readonly at: number;
  readonly parent: Span | undefined;
}

/** Receiver of spans: an OpenTelemetry adapter, or a user-defined tracer. */
export interface Tracer<Span extends TracedSpan = TracedSpan> {
  /** Starts a span, at the time and under the parent of `start`. */
  readonly startSpan: (start: SpanStart<Span>) => Span;
}

/** Source of run events, such as a run handle. */
export interface Traceable {
  /** Calls `reader` with each event until the returned function is called. */
  on(reader: (event: RunEvent) => void): () => void;
}

/**
 * Traces a run from the start until the run ends, fails or waits; a resumed run is a new trace. Returns the handle, so
 * that the call can be wrapped: `traceRun(agent.run({ … }), tracer)`. Results replayed after a crash create no span.
 */
export function traceRun<Handle extends Traceable, Span extends TracedSpan>(
  handle: Handle,
  tracer: Tracer<Span>,
): Handle {
  if (typeof tracer?.startSpan !== "function")
    throw invalidOption({
      where: "traceRun",
      expected: "a tracer with startSpan",
      got: tracer,
      fix: "Pass { startSpan: ({ name, kind, attributes, at, parent }) => span }",
    });
  const trace = new RunTrace(tracer);
  handle.on((event) => trace.read(event));
  return handle;
}

/** Spans of a run. */
class RunTrace<Span extends TracedSpan> {
  readonly #tracer: Tracer<Span>;
  readonly #openSpans = new Map<string, Span>();
  #root: Span | undefined;

  constructor(tracer: Tracer<Span>) {
    this.#tracer = tracer;
  }

  read(event: RunEvent): void {
    if (event.type.startsWith("run.")) this.#readRunEvent(event);
    else this.#readStepEvent(event);
  }

  /** Starts and ends the span of the agent; ignores the events of inner graphs. */
  #readRunEvent(event: RunEvent): void {
    if (event.within !== undefined) return;
    switch (event.type) {
      case "run.started":
        this.#root ??= this.#tracer.startSpan({
          name: `invoke_agent ${event.graph}`,
          kind: "internal",
          attributes: toAgentAttributes(event),
          at: event.at,
          parent: undefined,
        });
        return;
      case "run.completed":
      case "run.waiting":
      case "run.paused":
        this.#endAll(event.at);
        return;
      case "run.cancelled":
        this.#endAll(event.at, "cancelled");
        return;
      case "run.failed":
        this.#endAll(event.at, event.error.code);
        return;
      default:
    }
  }

  /** Starts and ends the spans of model calls and tool calls. */
  #readStepEvent(event: RunEvent): void {
    const { at } = event;
    switch (event.type) {
      case "model.started": {
        const attributes = toModelAttributes(event);
        this.#start(toModelSpanId(event), { name: `chat ${event.model}`, kind: "client", attributes, at });
        return;
      }
      case "message.completed":
        this.#end(toModelSpanId(event), { at, attributes: toReplyAttributes(event) });
        return;
      case "task.failed":
      case "task.retried":
        this.#end(toModelSpanId(event), { at, failure: event.error.code });
        return;
      case "tool.started": {
        const attributes = toToolAttributes(event);
        this.#start(toCallSpanId(event), { name: `execute_tool ${event.tool}`, kind: "internal", attributes, at });
        return;
      }
      case "tool.completed":
      case "tool.failed": {
        const { usage, error } = event.result;
        this.#end(toCallSpanId(event), { at, attributes: toUsageAttributes(usage), failure: error?.kind });
        return;
      }
      default:
    }
  }

  #start(id: string, start: Omit<SpanStart<Span>, "parent">): void {
    this.#openSpans.set(id, this.#tracer.startSpan({ ...start, parent: this.#root }));
  }

  #end(id: string, { at, attributes = {}, failure }: SpanEnd): void {
    const span = this.#openSpans.get(id);
    this.#openSpans.delete(id);
    if (span === undefined) return;
    span.set(attributes);
    if (failure !== undefined) span.fail(failure);
    span.end(at);
  }

  #endAll(at: number, failure?: string): void {
    for (const id of this.#openSpans.keys()) this.#end(id, { at, failure });
    if (failure !== undefined) this.#root?.fail(failure);
    this.#root?.end(at);
    this.#root = undefined;
  }
}

/** End of a span: time in epoch milliseconds, attributes, and the error type of a failure. */
interface SpanEnd {
  readonly at: number;
  readonly attributes?: SpanAttributes;
  readonly failure?: string | undefined;
}

type EventOfType<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

function toModelSpanId({
  withinId = "",
  within = "",
  task,
}: {
  readonly withinId?: string;
  readonly within?: string;
  readonly task: string;
}): string {
  return `model ${withinId}/${within}/${task}`;
}

function toCallSpanId({
  withinId = "",
  within = "",
  task,
  callId: id,
}: EventOfType<"tool.started" | "tool.completed" | "tool.failed">): string {
  return `tool ${withinId}/${within}/${task}/${id}`;
}

function toAgentAttributes({ graph, thread, run }: EventOfType<"run.started">): SpanAttributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": graph,
    "gen_ai.conversation.id": thread,
    "statewright.run": run,
  };
}

function toModelAttributes({ model, within, messages }: EventOfType<"model.started">): SpanAttributes {
  const slash = model.indexOf("/");
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": model.slice(slash + 1),
    ...(slash < 0 ? {} : { "gen_ai.provider.name": model.slice(0, slash) }),
    "statewright.messages": messages,
    ...(within === undefined ? {} : { "statewright.nesting": within }),
  };
}

function toReplyAttributes({ message }: EventOfType<"message.completed">): SpanAttributes {
  const { finish, usage, answeredBy } = message;
  return {
    "gen_ai.response.finish_reasons": [finish],
    ...toUsageAttributes(usage),
    ...(answeredBy === undefined ? {} : { "gen_ai.response.model": answeredBy }),
  };
}

function toToolAttributes({ tool, callId: id, within }: EventOfType<"tool.started">): SpanAttributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": tool,
    "gen_ai.tool.call.id": id,
    "gen_ai.tool.type": "function",
    ...(within === undefined ? {} : { "statewright.nesting": within }),
  };
}

function toUsageAttributes({ inputTokens, outputTokens, cachedTokens, cacheWriteTokens }: Usage = {}): SpanAttributes {
  const attributes: Record<string, number> = {};
  if (inputTokens !== undefined) attributes["gen_ai.usage.input_tokens"] = inputTokens;
  if (outputTokens !== undefined) attributes["gen_ai.usage.output_tokens"] = outputTokens;
  if (cachedTokens !== undefined) attributes["gen_ai.usage.cache_read.input_tokens"] = cachedTokens;
  if (cacheWriteTokens !== undefined) attributes["gen_ai.usage.cache_creation.input_tokens"] = cacheWriteTokens;
  return attributes;
}
