/** How an agent asks its model: its own options, and the middleware that says the same for any graph. */
import { createAgent, modelFallback, modelRetry, modelTimeouts } from "@statewright/agent";
import {
  type AssistantMessage,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  type Message,
  type ModelFailure,
  messages,
  type RunEvent,
  run,
  START,
  StatewrightError,
  subgraph,
  textOf,
} from "@statewright/core";
import { call, failWith, say, scriptedModel, stall, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";

function failure(details: Partial<ModelFailure>): StatewrightError {
  return new StatewrightError("model_failed", { what: "no", next: "Look", details: { retryable: true, ...details } });
}

const busy = failWith(failure({ status: 503 }));

/** Ask an agent on a clock that goes as far as it must. */
async function asked(agent: ReturnType<typeof createAgent>) {
  const world = virtualClock();
  const handle = agent.run({ input: "Hello", world });
  const events: RunEvent[] = [];
  handle.on((event) => events.push(event));
  const ending = handle.result.then(
    ({ state }) => ({ messages: state.messages, error: undefined }),
    (error: unknown) => ({ messages: [] as readonly Message[], error }),
  );
  await world.runAll();
  const { messages: said, error } = await ending;
  return { answer: said.at(-1) as AssistantMessage | undefined, error, events };
}

test("an agent asks three times in all, and says how otherwise", async () => {
  const usual = scriptedModel([busy, busy, say("Hi")]);
  expect((await asked(createAgent({ name: "chat", model: usual }))).answer?.lost).toHaveLength(2);
  const failing = scriptedModel([busy, busy, busy, say("Hi")]);
  expect((await asked(createAgent({ name: "chat", model: failing }))).error).toMatchObject({ code: "model_failed" });
  const once = scriptedModel([busy, say("Hi")]);
  await asked(createAgent({ name: "chat", model: once, retry: { attempts: 1 } }));
  expect(once.requests).toHaveLength(1);
});

test("an agent gives up a model that is silent, and asks the one that stands in", async () => {
  const model = scriptedModel([stall({ after: say("I ") })], { id: "slow" });
  const { answer, events } = await asked(
    createAgent({
      name: "chat",
      model,
      timeouts: { firstTokenMs: 1_000, idleMs: 500 },
      retry: { attempts: 1 },
      fallback: [scriptedModel([say("Hi")], { id: "quick" })],
    }),
  );
  expect(answer).toMatchObject({ answeredBy: "quick", lost: [{ model: "slow", kind: "timeout" }] });
  expect(events.filter(({ type }) => type === "message.voided")).toHaveLength(1);
});

test("what is asked again repeats no hook at the ends of an agent, no question and no tool", async () => {
  const marks: string[] = [];
  const marking = defineMiddleware({
    name: "marking",
    beforeAgent: () => void marks.push("begin"),
    beforeModel: () => void marks.push("before"),
    afterAgent: () => void marks.push("end"),
  });
  const model = scriptedModel([busy, busy, say("Hi")]);
  await asked(createAgent({ name: "chat", model, middleware: [marking] }));
  expect(marks).toEqual(["begin", "before", "end"]);
});

test("modelRetry, modelFallback and modelTimeouts say for all model calls of a graph how they are made", async () => {
  const second = scriptedModel([say("Hi")], { id: "second" });
  const first = scriptedModel([busy, busy, stall()], { id: "first" });
  const graph = defineGraph({
    name: "outer",
    state: defineState({ messages: messages() }),
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
    lost: [{ kind: "overloaded" }, { kind: "overloaded" }, { kind: "timeout" }],
  });
  expect(first.requests).toHaveLength(3);
});

test("a fallback answers in the middle of a conversation, with its own calls", async () => {
  const first = scriptedModel([failWith(failure({ status: 401, retryable: false }))], { id: "first" });
  const second = scriptedModel([say("Hi")], { id: "second" });
  const { answer } = await asked(createAgent({ name: "chat", model: first, middleware: [modelFallback([second])] }));
  expect(textOf(answer as AssistantMessage)).toBe("Hi");
  expect(second.requests[0]?.messages).toHaveLength(1);
});

test.each([
  ["two that say the same", () => [modelRetry(), modelRetry({ attempts: 5 })], /retry .* twice/],
  ["an unknown kind", () => [modelFallback([], { on: ["sometimes" as never] })], /"sometimes"/],
  ["no model", () => [modelFallback(["gpt" as never])], /"gpt"/],
  ["an unknown limit", () => [modelTimeouts({ first: 1 } as never)], /"first"/],
  ["no attempts", () => [modelRetry({ attempts: 0 })], /retry policy/],
])("refused where it is said: %s", (_what, middleware, said) => {
  const making = () => createAgent({ name: "chat", model: scriptedModel([call("x", {})]), middleware: middleware() });
  expect(making).toThrow(expect.objectContaining({ code: "invalid_option", message: expect.stringMatching(said) }));
});

test("refused where an agent and its middleware say the same", () => {
  const model = scriptedModel([say("Hi")]);
  const making = () => createAgent({ name: "chat", model, retry: { attempts: 2 }, middleware: [modelRetry()] });
  expect(making).toThrow(
    /the agent "chat" says retry of its model calls twice: by its own options and by the middleware "modelRetry"/,
  );
});
