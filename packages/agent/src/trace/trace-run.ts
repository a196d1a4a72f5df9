/**
 * A run as spans, for any tracer: one for the agent, one for each model call and each tool call, named by the OpenTelemetry
 * conventions for generative AI (version 1.41.0, in development). They are made of the run's events: no text, no argument and
 * no result stands in them.
 */
import { type RunEvent, StatewrightError, type Usage } from "@statewright/core";

/** The version of the conventions that names follow. */
export const genAiConventions = "1.41.0";

/** What a span may say. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A span that has begun. */
export interface TracedSpan {
  readonly set: (attributes: SpanAttributes) => void;
  /** It failed: the type of the error. */
  readonly fail: (type: string) => void;
  /** It ends, in milliseconds since the epoch. */
  readonly end: (at: number) => void;
}

/** A span about to begin. */
export interface SpanStart<Span extends TracedSpan = TracedSpan> {
  readonly name: string;
  readonly kind: "client" | "internal";
  readonly attributes: SpanAttributes;
  /** When it begins, in milliseconds since the epoch. */
  readonly at: number;
  readonly parent: Span | undefined;
}

/** Where spans go: an adapter of OpenTelemetry, or of a tracer of your own. */
export interface Tracer<Span extends TracedSpan = TracedSpan> {
  readonly startSpan: (start: SpanStart<Span>) => Span;
}

/** What can be traced: the handle of a run. */
export interface Traceable {
  on(reader: (event: RunEvent) => void): () => void;
}

/**
 * Trace a run, from its start to where it ends, fails or waits; a resume is a trace of its own. Gives the handle back, so that
 * it stands around the call: `traceRun(agent.run({ … }), tracer)`. What is handed back after a crash makes no span.
 */
export function traceRun<Handle extends Traceable, Span extends TracedSpan>(
  handle: Handle,
  tracer: Tracer<Span>,
): Handle {
  if (typeof tracer?.startSpan !== "function")
    throw new StatewrightError("invalid_option", {
      what: "traceRun got no tracer",
      next: "Give { startSpan: ({ name, kind, attributes, at, parent }) => span }",
    });
  const open = new Map<string, Span>();
  let root: Span | undefined;
  const begin = (id: string, start: Omit<SpanStart<Span>, "parent">): Span => {
    const span = tracer.startSpan({ ...start, parent: root });
    open.set(id, span);
    return span;
  };
  const finish = (id: string, at: number, attributes: SpanAttributes, failure?: string): void => {
    const span = open.get(id);
    open.delete(id);
    if (span === undefined) return;
    span.set(attributes);
    if (failure !== undefined) span.fail(failure);
    span.end(at);
  };
  const finishAll = (at: number, failure?: string): void => {
    for (const id of open.keys()) finish(id, at, {}, failure);
    if (failure !== undefined) root?.fail(failure);
    root?.end(at);
    root = undefined;
  };
  handle.on((event) => {
    const { at } = event;
    switch (event.type) {
      case "run.started":
        if (event.within !== undefined || root !== undefined) return;
        root = tracer.startSpan({
          name: `invoke_agent ${event.graph}`,
          kind: "internal",
          attributes: agentOf(event),
          at,
          parent: undefined,
        });
        return;
      case "model.started":
        begin(modelId(event), { name: `chat ${event.model}`, kind: "client", attributes: modelOf(event), at });
        return;
      case "message.completed": {
        const { finish: reason, usage, answeredBy } = event.message;
        const by = answeredBy === undefined ? {} : { "gen_ai.response.model": answeredBy };
        finish(modelId(event), at, { "gen_ai.response.finish_reasons": [reason], ...usageOf(usage), ...by });
        return;
      }
      case "task.failed":
      case "task.retried":
        finish(modelId(event), at, {}, event.error.code);
        return;
      case "tool.started":
        begin(callId(event), { name: `execute_tool ${event.tool}`, kind: "internal", attributes: toolOf(event), at });
        return;
      case "tool.completed":
      case "tool.failed":
        finish(callId(event), at, usageOf(event.result.usage), event.result.error?.kind);
        return;
      case "run.completed":
      case "run.waiting":
      case "run.paused":
        if (event.within === undefined) finishAll(at);
        return;
      case "run.cancelled":
        if (event.within === undefined) finishAll(at, "cancelled");
        return;
      case "run.failed":
        if (event.within === undefined) finishAll(at, event.error.code);
        return;
      default:
    }
  });
  return handle;
}

type Of<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

function modelId({
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

function callId({
  withinId = "",
  within = "",
  task,
  callId: id,
}: Of<"tool.started" | "tool.completed" | "tool.failed">): string {
  return `tool ${withinId}/${within}/${task}/${id}`;
}

function agentOf({ graph, thread, run }: Of<"run.started">): SpanAttributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": graph,
    "gen_ai.conversation.id": thread,
    "statewright.run": run,
  };
}

function modelOf({ model, within, messages }: Of<"model.started">): SpanAttributes {
  const slash = model.indexOf("/");
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": model.slice(slash + 1),
    ...(slash < 0 ? {} : { "gen_ai.provider.name": model.slice(0, slash) }),
    "statewright.messages": messages,
    ...(within === undefined ? {} : { "statewright.within": within }),
  };
}

function toolOf({ tool, callId: id, within }: Of<"tool.started">): SpanAttributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": tool,
    "gen_ai.tool.call.id": id,
    "gen_ai.tool.type": "function",
    ...(within === undefined ? {} : { "statewright.within": within }),
  };
}

function usageOf({ inputTokens, outputTokens, cachedTokens, cacheWriteTokens }: Usage = {}): SpanAttributes {
  const known: Record<string, number> = {};
  if (inputTokens !== undefined) known["gen_ai.usage.input_tokens"] = inputTokens;
  if (outputTokens !== undefined) known["gen_ai.usage.output_tokens"] = outputTokens;
  if (cachedTokens !== undefined) known["gen_ai.usage.cache_read.input_tokens"] = cachedTokens;
  if (cacheWriteTokens !== undefined) known["gen_ai.usage.cache_creation.input_tokens"] = cacheWriteTokens;
  return known;
}
