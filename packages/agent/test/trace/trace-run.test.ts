import { createAgent } from "@statewright/agent";
import { type SpanStart, type TracedSpan, traceRun } from "@statewright/agent/inspect";
import { confirmTools } from "@statewright/agent/middleware";
import { memoryStore, StatewrightError } from "@statewright/core";
import { call, failWith, type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import { createRecordingTool } from "../support/desk.ts";

interface Span extends TracedSpan {
  readonly start: SpanStart<Span>;
  readonly facts: Record<string, unknown>;
  ended: number;
  failure: string | undefined;
}

function tracing() {
  const spans: Span[] = [];
  const startSpan = (start: SpanStart<Span>): Span => {
    const span: Span = {
      start,
      facts: { ...start.attributes },
      ended: 0,
      failure: undefined,
      set: (attributes) => void Object.assign(span.facts, attributes),
      fail: (type) => {
        span.failure = type;
      },
      end: () => {
        span.ended += 1;
      },
    };
    spans.push(span);
    return span;
  };
  const tree = () =>
    spans.map(
      ({ start, failure, ended }) =>
        `${start.parent === undefined ? "" : "  "}${start.name}${failure === undefined ? "" : ` !${failure}`} ${ended}`,
    );
  return { tracer: { startSpan }, spans, tree };
}

function createOffice(script: readonly ScriptedEntry[], more: Partial<Parameters<typeof createAgent>[0]> = {}) {
  const model = scriptedModel(script, { id: "acme/large" });
  return createAgent({
    name: "desk",
    model,
    tools: [createRecordingTool([], "ping")],
    store: memoryStore(),
    retry: { attempts: 1 },
    ...more,
  });
}

test("a traced run is an agent span with one child span per model call and tool call, each ended once", async () => {
  const { tracer, tree, spans } = tracing();
  const agent = createOffice([[call("ping", { text: "secret" }), call("ping", {})], say("my answer")]);
  await traceRun(agent.run({ thread: "t", input: "my words" }), tracer).result;
  expect(tree()).toEqual([
    "invoke_agent desk 1",
    "  chat acme/large 1",
    "  execute_tool ping 1",
    "  execute_tool ping 1",
    "  chat acme/large 1",
  ]);
  expect(spans[1]?.facts).toEqual({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "acme",
    "gen_ai.request.model": "large",
    "gen_ai.response.finish_reasons": ["calls"],
    "gen_ai.usage.input_tokens": expect.any(Number),
    "gen_ai.usage.output_tokens": expect.any(Number),
    "statewright.messages": 1,
  });
  expect(spans[2]?.facts).toMatchObject({ "gen_ai.tool.name": "ping", "gen_ai.tool.call.id": "call_1" });
  expect(spans[0]?.facts).toMatchObject({ "gen_ai.agent.name": "desk", "gen_ai.conversation.id": "t" });
  expect(JSON.stringify(spans.map(({ facts }) => facts))).not.toMatch(/secret|my answer|my words/);
});

test("a failure is recorded on the failed span and its parents, and leaves no span open", async () => {
  const { tracer, tree } = tracing();
  const away = new StatewrightError("model_failed", { what: "away", next: "Wait", details: { retryable: false } });
  const handle = traceRun(
    createOffice([call("nothing", {}), failWith(away)]).run({ thread: "t", input: "go" }),
    tracer,
  );
  await expect(handle.result).rejects.toThrow(/away/);
  expect(tree()[0]).toBe("invoke_agent desk !model_failed 1");
  expect(tree().at(-1)).toBe("  chat acme/large !model_failed 1");
});

test("a waiting run ends its trace, and the resume starts a new trace without spans of stored work", async () => {
  const first = tracing();
  const agent = createOffice([call("ping", {}), say("ok")], { middleware: [confirmTools({ policy: () => true })] });
  const waiting = await traceRun(agent.run({ thread: "t", input: "go" }), first.tracer).result;
  expect(first.tree()).toEqual(["invoke_agent desk 1", "  chat acme/large 1", "  execute_tool ping 1"]);
  const second = tracing();
  const answers =
    waiting.status === "waiting" ? Object.fromEntries(waiting.interrupts.map(({ id }) => [id, true])) : {};
  await traceRun(agent.resume({ thread: "t", answers }), second.tracer).result;
  expect(second.tree()).toEqual(["invoke_agent desk 1", "  execute_tool ping 1", "  chat acme/large 1"]);
});

test("a cancelled run leaves no span open", async () => {
  const { tracer, spans } = tracing();
  const handle = traceRun(createOffice([call("ping", {}), say("ok")]).run({ thread: "t", input: "go" }), tracer);
  handle.cancel("enough");
  expect((await handle.result).status).toBe("cancelled");
  expect(spans.every(({ ended }) => ended === 1)).toBe(true);
  expect(() => traceRun(handle, {} as never)).toThrow(/invalid_option/);
});
