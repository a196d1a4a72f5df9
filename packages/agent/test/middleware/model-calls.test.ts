/** Model attempts of an agent: its options, and the equal middleware of any graph. */
import { createAgent } from "@statewright/agent";
import { modelFallback, modelRetry, modelTimeouts } from "@statewright/agent/middleware";
import {
  type AssistantMessage,
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  getMessageText,
  type Message,
  type ModelFailure,
  type RunEvent,
  run,
  START,
  StatewrightError,
  subgraph,
} from "@statewright/core";
import { call, failWith, say, scriptedModel, stall, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";

function failure(details: Partial<ModelFailure>): StatewrightError {
  return new StatewrightError("model_failed", { what: "no", next: "Look", details: { retryable: true, ...details } });
}

const busy = failWith(failure({ status: 503 }));

/** Runs an agent and advances the clock as needed. */
async function runAgent(agent: ReturnType<typeof createAgent>) {
  const world = virtualClock();
  const handle = agent.run({ input: "Hello", world });
  const events: RunEvent[] = [];
  handle.on((event) => events.push(event));
  const ending = handle.result.then(
    ({ state }) => ({ messages: state.messages, error: undefined }),
    (error: unknown) => ({ messages: [] as readonly Message[], error }),
  );
  await world.runAll();
  const { messages, error } = await ending;
  return { answer: messages.at(-1) as AssistantMessage | undefined, error, events };
}

test("an agent makes three model attempts by default, and the retry option changes the number", async () => {
  const usual = scriptedModel([busy, busy, say("Hi")]);
  expect((await runAgent(createAgent({ name: "chat", model: usual }))).answer?.failedAttempts).toHaveLength(2);
  const failing = scriptedModel([busy, busy, busy, say("Hi")]);
  expect((await runAgent(createAgent({ name: "chat", model: failing }))).error).toMatchObject({ code: "model_failed" });
  const once = scriptedModel([busy, say("Hi")]);
  await runAgent(createAgent({ name: "chat", model: once, retry: { attempts: 1 } }));
  expect(once.requests).toHaveLength(1);
});

test("an agent gives up a silent model after its timeouts and asks the fallback model", async () => {
  const model = scriptedModel([stall({ after: say("I ") })], { id: "slow" });
  const { answer, events } = await runAgent(
    createAgent({
      name: "chat",
      model,
      timeouts: { firstTokenMs: 1_000, idleMs: 500 },
      retry: { attempts: 1 },
      fallback: [scriptedModel([say("Hi")], { id: "quick" })],
    }),
  );
  expect(answer).toMatchObject({ answeredBy: "quick", failedAttempts: [{ model: "slow", kind: "timeout" }] });
  expect(events.filter(({ type }) => type === "message.retracted")).toHaveLength(1);
});

test("a model retry repeats no agent hook, no interrupt and no tool call", async () => {
  const marks: string[] = [];
  const marking = defineMiddleware({
    name: "marking",
    beforeAgent: () => void marks.push("begin"),
    beforeModel: () => void marks.push("before"),
    afterAgent: () => void marks.push("end"),
  });
  const model = scriptedModel([busy, busy, say("Hi")]);
  await runAgent(createAgent({ name: "chat", model, middleware: [marking] }));
  expect(marks).toEqual(["begin", "before", "end"]);
});

test("modelRetry, modelFallback and modelTimeouts apply to all model calls of a graph", async () => {
  const second = scriptedModel([say("Hi")], { id: "second" });
  const first = scriptedModel([busy, busy, stall()], { id: "first" });
  const graph = defineGraph({
    name: "outer",
    state: defineState({ messages: channel.messages() }),
    middleware: [
      modelRetry({ attempts: 3, initialMs: 10 }),
      modelFallback([second]),
      modelTimeouts({ firstTokenMs: 100 }),
    ],
  })
    .nodes({
      ask: subgraph(createAgent({ name: "inner", model: first, retry: { attempts: 9 } }), {
        input: (state) => ({ messages: state.messages }),
        output: (state) => ({ messages: state.messages }),
      }),
    })
    .edges({ [START]: "ask", ask: END });
  const world = virtualClock();
  const user: Message = { role: "user", id: "u1", content: [{ type: "text", text: "Hello" }] };
  const handle = run(graph, { world, input: { messages: [user] } });
  await world.runAll();
  const answer = (await handle.result).state.messages.at(-1);
  expect(answer).toMatchObject({
    answeredBy: "second",
    failedAttempts: [{ kind: "overloaded" }, { kind: "overloaded" }, { kind: "timeout" }],
  });
  expect(first.requests).toHaveLength(3);
});

test("a fallback model answers within a conversation, and the tool calls of its reply are used", async () => {
  const first = scriptedModel([failWith(failure({ status: 401, retryable: false }))], { id: "first" });
  const second = scriptedModel([say("Hi")], { id: "second" });
  const { answer } = await runAgent(createAgent({ name: "chat", model: first, middleware: [modelFallback([second])] }));
  expect(getMessageText(answer as AssistantMessage)).toBe("Hi");
  expect(second.requests[0]?.messages).toHaveLength(1);
});

test.each([
  ["two equal options", () => [modelRetry(), modelRetry({ attempts: 5 })], /one retry .* got two/],
  ["an unknown kind", () => [modelFallback([], { on: ["sometimes" as never] })], /"sometimes"/],
  ["no model", () => [modelFallback([7 as never])], /got 7/],
  ["an unknown limit", () => [modelTimeouts({ first: 1 } as never)], /"first"/],
  ["no attempts", () => [modelRetry({ attempts: 0 })], /retry policy/],
])("invalid model call options are refused at creation: %s", (_what, middleware, said) => {
  const createInvalidAgent = () =>
    createAgent({ name: "chat", model: scriptedModel([call("x", {})]), middleware: middleware() });
  expect(createInvalidAgent).toThrow(
    expect.objectContaining({ code: "invalid_option", message: expect.stringMatching(said) }),
  );
});

test("createAgent refuses a model call option set both on the agent and by middleware", () => {
  const model = scriptedModel([say("Hi")]);
  const createInvalidAgent = () =>
    createAgent({ name: "chat", model, retry: { attempts: 2 }, middleware: [modelRetry()] });
  expect(createInvalidAgent).toThrow(
    /agent "chat": expected one retry for its model calls, got two: in its own options and in middleware "modelRetry"/,
  );
});
