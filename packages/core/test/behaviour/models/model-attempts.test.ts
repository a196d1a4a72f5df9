/** Failing, hanging and truncated model calls: retry, fallback and retraction of streamed text. */
import { describe, expect, test } from "vitest";
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  type Message,
  type Model,
  type ModelCallPolicy,
  type ModelFailureKind,
  type ModelRequest,
  memoryStore,
  type NodeRuntime,
  type RunEvent,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import {
  answerWith,
  createActingModel,
  createAskingGraph,
  createModelFailure,
  createReply,
  createUserInput,
  failWith,
  getLastAnswer,
  hangAfter,
} from "../../support/acting-model.ts";
import { collectEvents, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const plain = { attempts: 3, initialMs: 100, jitter: 0 } as const;
const long = 1_000_000;

/** Runs a graph to its end and advances the clock as needed. */
async function listAttempts(graph: ReturnType<typeof createAskingGraph>, world: VirtualWorld = createVirtualWorld()) {
  const handle = run(graph, { world, input: createUserInput("Hello") });
  const events = collectEvents(handle);
  const ending = handle.result.then(
    ({ state }) => ({ state, error: undefined }),
    (error: unknown) => ({ state: undefined, error }),
  );
  await world.advance(long);
  const { state, error } = await ending;
  expect(world.timers).toBe(0);
  return { events, error, answer: state === undefined ? undefined : getLastAnswer(state) };
}

/** Node that requests the model once, and again immediately after a retryable failure. */
function createModelNode(model: Model) {
  return async (state: { readonly messages: readonly Message[] }, { model: ask }: NodeRuntime) => ({
    messages: [
      await ask({ model, request: { messages: state.messages, tools: [] }, retry: { attempts: 2, initialMs: 0 } }),
    ],
  });
}

/** Text as a stream reader shows it. */
async function listTexts(handle: { text(): AsyncIterable<string> }): Promise<string[]> {
  const texts: string[] = [];
  for await (const text of handle.text()) texts.push(text);
  return texts;
}

describe("model call retries", () => {
  test("a transient model failure is retried with growing delays on the clock of the run", async () => {
    const world = createVirtualWorld();
    const at: number[] = [];
    const recordCalls = (act: ReturnType<typeof answerWith>): ReturnType<typeof answerWith> => {
      return (options, request) => {
        at.push(world.clock.monotonic());
        return act(options, request);
      };
    };
    const model = createActingModel(
      "a",
      recordCalls(failWith({ status: 503 })),
      recordCalls(failWith({ status: 500 })),
      recordCalls(answerWith("Hi")),
    );
    const { answer, events } = await listAttempts(createAskingGraph(model, { retry: plain }), world);
    expect(at).toEqual([0, 100, 300]);
    expect(answer?.content).toEqual([{ type: "text", text: "Hi" }]);
    expect(getOnlyEvent(events, "model.retried")).toMatchObject([
      { attempt: 1, delayMs: 100, model: "a", next: "a", kind: "overloaded" },
      { attempt: 2, delayMs: 200, model: "a", next: "a", kind: "server_error", error: { code: "model_failed" } },
    ]);
    expect(getOnlyEvent(events, "task.retried")).toEqual([]);
  });

  test("a model call without a retry policy makes one request", async () => {
    const model = createActingModel("a", failWith({ status: 503 }), answerWith("Hi"));
    const { error } = await listAttempts(createAskingGraph(model));
    expect(error).toMatchObject({ code: "model_failed" });
    expect(model.requests).toHaveLength(1);
  });

  test("the retry delay that a provider requests is respected up to the allowed maximum", async () => {
    const measureWaits = async (retryAfterMs: number, retry: ModelCallPolicy["retry"]) => {
      const model = createActingModel("a", failWith({ status: 429, retryAfterMs }), answerWith("Hi"));
      const { events } = await listAttempts(createAskingGraph(model, { ...(retry && { retry }) }));
      return getOnlyEvent(events, "model.retried").map(({ delayMs }) => delayMs);
    };
    expect(await measureWaits(7_000, plain)).toEqual([7_000]);
    expect(await measureWaits(50, plain)).toEqual([100]);
    expect(await measureWaits(60_000, plain)).toEqual([60_000]);
    expect(await measureWaits(60_001, plain)).toEqual([]);
    expect(await measureWaits(60_001, { ...plain, maxRetryAfterMs: 90_000 })).toEqual([60_001]);
  });

  test.each<[string, ModelCallPolicy["retry"], unknown, number]>([
    ["a failure that the provider marks as final", plain, createModelFailure({ retryable: false, status: 400 }), 1],
    ["an error thrown by a client", plain, new Error("socket hang up"), 3],
    ["a programming error", plain, new TypeError("x is not a function"), 1],
    ["a listed kind", { ...plain, on: ["auth"] }, createModelFailure({ retryable: false, status: 401 }), 3],
    ["an unlisted kind", { ...plain, on: ["auth"] }, createModelFailure({ status: 503 }), 1],
    [
      "a failure accepted by a function",
      { ...plain, on: (error) => `${error}`.includes("odd") },
      new TypeError("odd"),
      3,
    ],
    [
      "a failure refused by a function",
      { ...plain, on: (_error, attempt) => attempt < 2 },
      createModelFailure({ status: 503 }),
      2,
    ],
  ])("a model failure is retried or final: %s", async (_what, retry, thrown, requests) => {
    const model = createActingModel("a", () => Promise.reject(thrown));
    await listAttempts(createAskingGraph(model, { ...(retry && { retry }) }));
    expect(model.requests).toHaveLength(requests);
  });

  test("a cancel ends the retry delay of a model call at once and no request follows", async () => {
    const world = createVirtualWorld();
    const model = createActingModel("a", failWith({ status: 429, retryAfterMs: 5_000 }), answerWith("Hi"));
    const handle = run(createAskingGraph(model, { retry: plain }), { world, input: createUserInput("Hello") });
    await world.advance(1_000);
    handle.cancel("enough");
    expect((await handle.result).status).toBe("cancelled");
    expect(world.timers).toBe(0);
    await world.advance(long);
    expect(model.requests).toHaveLength(1);
  });

  test("a retry delay of a model call does not count as idle time of its node", async () => {
    const model = createActingModel("a", failWith({ status: 429, retryAfterMs: 5_000 }), answerWith("Hi"));
    const { answer, events } = await listAttempts(
      createAskingGraph(model, { retry: plain }, { node: { idleTimeoutMs: 300 } }),
    );
    expect(answer?.failedAttempts).toHaveLength(1);
    expect(getOnlyEvent(events, "model.retried")).toMatchObject([{ delayMs: 5_000 }]);
  });

  test("model hooks run once per model call, whatever is retried inside", async () => {
    const marks: string[] = [];
    const marking = defineMiddleware({
      name: "marking",
      beforeModel: () => void marks.push("before"),
      aroundModel: async (request, next) => {
        marks.push("in");
        const answer = await next(request);
        marks.push(`out after ${answer.failedAttempts?.length}`);
        return answer;
      },
      afterModel: () => void marks.push("after"),
    });
    const model = createActingModel("a", failWith({}), failWith({}), answerWith("Hi"));
    await listAttempts(createAskingGraph(model, { retry: plain, middleware: [marking] }));
    expect(marks).toEqual(["before", "in", "out after 2", "after"]);
  });
});

describe("fallback models", () => {
  const kinds: readonly (readonly [ModelFailureKind, boolean])[] = [
    ["rate_limit", true],
    ["overloaded", true],
    ["server_error", true],
    ["connection", true],
    ["timeout", true],
    ["broken_reply", true],
    ["auth", true],
    ["quota", true],
    ["not_found", true],
    ["context_length", true],
    ["invalid_request", false],
    ["other", true],
  ];
  test.each(kinds)("a model failure of kind %s falls back to another model: %s", async (kind, stands) => {
    const first = createActingModel("a", failWith({ kind, retryable: false }));
    const second = createActingModel("b", answerWith("Hi from b"));
    const { answer, error, events } = await listAttempts(createAskingGraph(first, { fallback: [second] }));
    expect(second.requests).toHaveLength(stands ? 1 : 0);
    if (!stands) expect(error).toMatchObject({ code: "model_failed" });
    else {
      expect(answer).toMatchObject({ answeredBy: "b", failedAttempts: [{ model: "a", kind }] });
      expect(getOnlyEvent(events, "model.retried")).toMatchObject([{ model: "a", next: "b", delayMs: 0 }]);
    }
  });

  test("a fallback with a list of failure kinds is used for those kinds only", async () => {
    const fallback = { models: [createActingModel("b", answerWith("Hi"))], on: ["rate_limit"] } as const;
    const limited = await listAttempts(
      createAskingGraph(createActingModel("a", failWith({ status: 429, retryable: false })), { fallback }),
    );
    expect(limited.answer?.answeredBy).toBe("b");
    const broken = await listAttempts(
      createAskingGraph(createActingModel("a", failWith({ status: 500, retryable: false })), { fallback }),
    );
    expect(broken.error).toMatchObject({ code: "model_failed" });
  });

  test("a programming error of a model does not use the fallback", async () => {
    const second = createActingModel("b", answerWith("Hi"));
    await listAttempts(
      createAskingGraph(
        createActingModel("a", () => Promise.reject(new TypeError("odd"))),
        { fallback: [second] },
      ),
    );
    expect(second.requests).toEqual([]);
  });

  test("the attempts of a retry and a fallback add up and do not multiply", async () => {
    const models = ["a", "b", "c"].map((id) => createActingModel(id, failWith({})));
    const [first, ...fallback] = models;
    if (first === undefined) throw new Error("no model");
    const { error, events } = await listAttempts(createAskingGraph(first, { retry: plain, fallback }));
    expect(models.map(({ requests }) => requests.length)).toEqual([3, 1, 1]);
    expect(error).toMatchObject({ code: "model_failed" });
    expect(getOnlyEvent(events, "model.retried").map(({ next }) => next)).toEqual(["a", "a", "b", "c"]);
  });

  test("when every model fails, the error is the last failure and lists every request", async () => {
    const [big, small] = [
      createActingModel("big", failWith({ status: 529 })),
      createActingModel("small", failWith({ status: 401 })),
    ];
    const { error } = await listAttempts(
      createAskingGraph(big, { retry: { ...plain, attempts: 2 }, fallback: [small] }),
    );
    expect(error).toMatchObject({
      code: "model_failed",
      message: expect.stringContaining("3 requests were made: big: overloaded, big: overloaded, small: auth"),
      details: { status: 401, failedAttempts: [{ model: "big" }, { model: "big" }, { model: "small", kind: "auth" }] },
    });
    const alone = await listAttempts(createAskingGraph(createActingModel("big", failWith({ status: 529 }))));
    expect(alone.error).toMatchObject({ message: expect.not.stringContaining("requests were made") });
  });

  test("a fallback model may use the remaining attempts of the first model", async () => {
    const first = createActingModel("a", failWith({ retryable: false, status: 401 }));
    const second = createActingModel("b", failWith({}), failWith({}), answerWith("Hi"));
    const { answer } = await listAttempts(createAskingGraph(first, { retry: plain, fallback: [second] }));
    expect(second.requests).toHaveLength(3);
    expect(answer).toMatchObject({ answeredBy: "b" });
  });

  test("a fallback model is called at once when the provider requests a longer delay than allowed", async () => {
    const first = createActingModel("a", failWith({ status: 429, retryAfterMs: 600_000 }));
    const { events } = await listAttempts(
      createAskingGraph(first, { retry: plain, fallback: [createActingModel("b", answerWith("Hi"))] }),
    );
    expect(getOnlyEvent(events, "model.retried")).toMatchObject([{ next: "b", delayMs: 0 }]);
  });

  test("an invalid model reply is a failure that uses the fallback", async () => {
    const first = createActingModel("a", () => Promise.resolve({ content: "Hi" } as never));
    const { answer } = await listAttempts(
      createAskingGraph(first, { fallback: [createActingModel("b", answerWith("Hi"))] }),
    );
    expect(answer).toMatchObject({ answeredBy: "b", failedAttempts: [{ model: "a", kind: "broken_reply" }] });
  });
});

describe("model timeouts", () => {
  test("a model without a first token in time is retried, and its signal is aborted", async () => {
    const world = createVirtualWorld();
    const reasons: unknown[] = [];
    const silent: ReturnType<typeof hangAfter> = (options, request) => {
      options.signal.addEventListener("abort", () => reasons.push(options.signal.reason));
      options.alive?.("ping");
      return hangAfter()(options, request);
    };
    const model = createActingModel("a", silent, answerWith("Hi"));
    const { answer, events } = await listAttempts(
      createAskingGraph(model, { retry: plain, timeouts: { firstTokenMs: 2_000, idleMs: 50 } }),
      world,
    );
    expect(answer).toMatchObject({ failedAttempts: [{ model: "a", kind: "timeout" }] });
    expect(reasons).toMatchObject([{ code: "model_failed", details: { kind: "timeout", limit: "firstTokenMs" } }]);
    const [started, retried] = [getOnlyEvent(events, "model.started")[0], getOnlyEvent(events, "model.retried")[0]];
    expect((retried?.at ?? 0) - (started?.at ?? 0)).toBe(2_000);
  });

  test("the idle timeout of a model counts between parts of an answer, and a sign of life resets it", async () => {
    const world = createVirtualWorld();
    const pause = (ms: number): Promise<void> => new Promise((resolve) => void world.schedule.after(ms, resolve));
    const slow: ReturnType<typeof answerWith> = async ({ delta, alive }) => {
      for (const text of ["One ", "two "]) {
        await pause(80);
        delta?.({ type: "text", text });
      }
      await pause(80);
      alive?.("ping");
      await pause(80);
      return createReply("One two ");
    };
    const model = createActingModel("a", slow, hangAfter("One "), answerWith("Hi"));
    const graph = createAskingGraph(model, { retry: plain, timeouts: { idleMs: 100 } });
    expect((await listAttempts(graph, world)).answer?.failedAttempts).toBeUndefined();
    const second = await listAttempts(graph, world);
    expect(second.answer).toMatchObject({ failedAttempts: [{ kind: "timeout" }] });
    expect(getOnlyEvent(second.events, "message.retracted")).toMatchObject([{ kind: "timeout", text: "One " }]);
  });

  test("the total timeout of a model call includes retry delays and fallback models", async () => {
    const world = createVirtualWorld();
    const second = createActingModel("b", answerWith("Hi"));
    const first = createActingModel("a", failWith({}), hangAfter("One "));
    const { error } = await listAttempts(
      createAskingGraph(first, {
        retry: { ...plain, initialMs: 400 },
        fallback: [second],
        timeouts: { totalMs: 1_000 },
      }),
      world,
    );
    expect(error).toMatchObject({ details: { kind: "timeout", limit: "totalMs", retryable: false } });
    expect(second.requests).toEqual([]);
  });

  test("a retry delay that would exceed the total timeout is not started", async () => {
    const first = createActingModel("a", failWith({ status: 429, retryAfterMs: 5_000 }), answerWith("Hi"));
    const { error, events } = await listAttempts(
      createAskingGraph(first, { retry: plain, timeouts: { totalMs: 1_000 } }),
    );
    expect(error).toMatchObject({ details: { status: 429 } });
    expect(getOnlyEvent(events, "model.retried")).toEqual([]);
  });

  test("deltas of an abandoned model request are not emitted", async () => {
    const world = createVirtualWorld();
    let late: (() => void) | undefined;
    const model = createActingModel(
      "a",
      ({ delta }) =>
        new Promise((resolve) => {
          delta?.({ type: "text", text: "One " });
          late = () => {
            delta?.({ type: "text", text: "two" });
            resolve(createReply("One two"));
          };
        }),
      ({ delta }) => {
        late?.();
        delta?.({ type: "text", text: "Hi" });
        return createReply("Hi");
      },
    );
    const { answer, events } = await listAttempts(
      createAskingGraph(model, { retry: plain, timeouts: { idleMs: 100 } }),
      world,
    );
    expect(getOnlyEvent(events, "message.delta").map(({ text }) => text)).toEqual(["One ", "Hi"]);
    expect(answer?.content).toEqual([{ type: "text", text: "Hi" }]);
  });
});

describe("retracted text", () => {
  test("text streamed by a broken model request is retracted, and the conversation has the text once", async () => {
    const world = createVirtualWorld();
    const model = createActingModel(
      "a",
      failWith({ kind: "broken_reply" }, "It is ", "rai"),
      answerWith("It is ", "raining."),
    );
    const handle = run(createAskingGraph(model, { retry: plain }), { world, input: createUserInput("Oslo?") });
    const events = collectEvents(handle);
    const texts = listTexts(handle);
    await world.advance(long);
    const { state } = await handle.result;
    const id = getLastAnswer(state).id;
    expect(events.filter(({ type }) => type.startsWith("message."))).toMatchObject([
      { type: "message.delta", messageId: id, text: "It is " },
      { type: "message.delta", messageId: id, text: "rai" },
      { type: "message.retracted", messageId: id, model: "a", kind: "broken_reply", text: "It is rai" },
      { type: "message.delta", messageId: id, text: "It is " },
      { type: "message.delta", messageId: id, text: "raining." },
      { type: "message.completed", message: { id, failedAttempts: [{ model: "a", kind: "broken_reply" }] } },
    ]);
    expect(state.messages.map(({ content }) => content)).toEqual([
      [{ type: "text", text: "Oslo?" }],
      [{ type: "text", text: "It is raining." }],
    ]);
    expect(await texts).toEqual([
      "It is ",
      "rai",
      "\n[The answer above broke off and does not count.]\n",
      "It is ",
      "raining.",
    ]);
  });

  test("text() emits the configured replacement for retracted text, and nothing for a request without text", async () => {
    const world = createVirtualWorld();
    const model = createActingModel("a", failWith({}), failWith({}, "No"), answerWith("Yes"));
    const handle = run(createAskingGraph(model, { retry: plain }), { world, input: createUserInput("Oslo?") });
    const texts = listTexts({ text: () => handle.text({ formatRetracted: (text) => "\b".repeat(text.length) }) });
    await world.advance(long);
    expect(await texts).toEqual(["No", "\b\b", "Yes"]);
  });

  test("text() starts a message on a new line when its first request failed before any text", async () => {
    const thinks = createActingModel(
      "a",
      answerWith("One."),
      ({ delta }) => {
        delta?.({ type: "reasoning", text: "Hm" });
        throw createModelFailure({ kind: "broken_reply" });
      },
      answerWith("Two."),
    );
    const graph = defineGraph({ name: "twice", state: defineState({ messages: channel.messages() }) })
      .nodes({ first: createModelNode(thinks), second: createModelNode(thinks) })
      .edges({ [START]: "first", first: "second", second: END });
    expect(await listTexts(run(graph, { input: createUserInput("Go") }))).toEqual(["One.", "\nTwo."]);
  });

  test("text() emits the text that was not streamed when the message is complete", async () => {
    const whole = run(createAskingGraph(createActingModel("a", () => createReply("All at once."))), {
      input: createUserInput("Go"),
    });
    expect(await listTexts(whole)).toEqual(["All at once."]);
    const partly = createActingModel("a", ({ delta }) => {
      delta?.({ type: "text", text: "All " });
      return createReply("All of it.");
    });
    expect(await listTexts(run(createAskingGraph(partly), { input: createUserInput("Go") }))).toEqual([
      "All ",
      "of it.",
    ]);
  });

  test("text() called in the middle of a message ends with that message", async () => {
    let texts: Promise<string[]> | undefined;
    const model = createActingModel("a", ({ delta }) => {
      delta?.({ type: "text", text: "One " });
      texts = listTexts(handle);
      delta?.({ type: "text", text: "two." });
      return createReply("One two.");
    });
    const handle = run(createAskingGraph(model), { input: createUserInput("Go") });
    handle.on(() => undefined);
    await handle.result;
    expect(await texts).toEqual(["two."]);
  });

  test("a hook that repeats the model call or replaces the reply retracts the streamed text", async () => {
    const again = defineMiddleware({
      name: "again",
      aroundModel: async (request, next) => {
        await next(request);
        return next(request);
      },
    });
    const model = createActingModel("a", answerWith("First"), answerWith("Second"));
    const asked = await listAttempts(createAskingGraph(model, { middleware: [again] }));
    expect(getOnlyEvent(asked.events, "message.retracted")).toMatchObject([{ kind: "replaced", text: "First" }]);
    expect(asked.answer?.failedAttempts).toEqual([
      { model: "a", kind: "replaced", usage: { inputTokens: 3, outputTokens: 2 } },
    ]);

    const masked = defineMiddleware({ name: "masked", afterModel: (answer) => ({ ...answer, ...createReply("***") }) });
    const handle = run(createAskingGraph(createActingModel("a", answerWith("secret")), { middleware: [masked] }), {
      input: createUserInput("Go"),
    });
    expect(await listTexts(handle)).toEqual(["secret", "\n[The answer above broke off and does not count.]\n", "***"]);
  });

  test("a node that times out in mid-answer and is retried does not duplicate text", async () => {
    const world = createVirtualWorld();
    const model = createActingModel("a", hangAfter("One "), answerWith("One two."));
    const graph = createAskingGraph(model, {}, { node: { idleTimeoutMs: 100, retry: { attempts: 2, initialMs: 1 } } });
    const { answer, events } = await listAttempts(graph, world);
    expect(getOnlyEvent(events, "message.retracted")).toMatchObject([{ kind: "cancelled", text: "One " }]);
    expect(answer?.failedAttempts).toEqual([{ model: "a", kind: "cancelled" }]);
  });

  test("a cancel retracts the streamed text", async () => {
    const world = createVirtualWorld();
    const handle = run(createAskingGraph(createActingModel("a", hangAfter("One "))), {
      world,
      input: createUserInput("Go"),
    });
    const events = collectEvents(handle);
    await world.waitUntilIdle();
    handle.cancel();
    await handle.result;
    expect(events.map(({ type }) => type).slice(-3)).toEqual(["message.retracted", "task.failed", "run.cancelled"]);
  });

  test("text streamed by a crashed process is retracted in the next process, and both requests are reported", async () => {
    const owner = memoryStore();
    const heir = owner.peer();
    // Model ids may contain the separator of journal keys.
    const first = createActingModel("a, 5%2C", failWith({}, "One "), hangAfter("Two "));
    const dying = run(createAskingGraph(first, { retry: { ...plain, initialMs: 0 } }), {
      store: owner,
      thread: "t",
      input: createUserInput("Go"),
    });
    ignoreResult(dying.result);
    for await (const event of dying.events()) if (event.type === "message.delta" && event.text === "Two ") break;
    await createVirtualWorld().waitUntilIdle();
    owner.crash();
    const handle = resume(createAskingGraph(createActingModel("a", answerWith("Done."))), { store: heir, thread: "t" });
    const events: RunEvent[] = collectEvents(handle);
    const texts = listTexts(handle);
    const { state } = await handle.result;
    const { id, failedAttempts } = getLastAnswer(state);
    expect(failedAttempts).toEqual([
      { model: "a, 5%2C", kind: "unrecorded" },
      { model: "a, 5%2C", kind: "unrecorded" },
    ]);
    expect(getOnlyEvent(events, "message.retracted")).toMatchObject([
      { messageId: id, model: "a, 5%2C", kind: "unrecorded" },
    ]);
    expect(await texts).toEqual(["Done."]);
    expect(state.messages).toHaveLength(2);
  });
});

describe("failed attempts of a model call", () => {
  test("a message lists the cost of its failed attempts where known, and no model request includes that list", async () => {
    const sent: ModelRequest[] = [];
    const store = memoryStore();
    const model = createActingModel("a", failWith({ usage: { inputTokens: 11 } }), failWith({}), (options, request) => {
      sent.push(request);
      return answerWith("Hi")(options, request);
    });
    const graph = createAskingGraph(model, { retry: { ...plain, initialMs: 0 } });
    const { state } = await run(graph, { store, thread: "t", input: createUserInput("Hello") }).result;
    expect(getLastAnswer(state).failedAttempts).toEqual([
      { model: "a", kind: "other", usage: { inputTokens: 11 } },
      { model: "a", kind: "other" },
    ]);
    await run(graph, {
      store,
      thread: "t",
      input: { messages: [{ ...createUserInput("More").messages[0], id: "u2" } as never] },
    }).result;
    expect(sent[1]?.messages).toHaveLength(3);
    expect(JSON.stringify(sent)).not.toContain("failedAttempts");
  });

  test("a message from a first successful request has no list of failed attempts", async () => {
    const { answer } = await listAttempts(
      createAskingGraph(createActingModel("a", answerWith("Hi")), {
        retry: plain,
        fallback: [createActingModel("b", answerWith("No"))],
      }),
    );
    expect(Object.keys(answer ?? {}).sort()).toEqual(["content", "finish", "id", "role", "usage"]);
  });
});

describe("modelCall of middleware", () => {
  const createPolicy = (name: string, modelCall: ModelCallPolicy) => defineMiddleware({ name, modelCall });

  test("the outermost middleware wins for each part of the model call policy, and inner middleware gives the other parts", async () => {
    const policies = [createPolicy("all", { retry: { attempts: 2, initialMs: 0 } })];
    const middleware = [
      createPolicy("own", {
        retry: { attempts: 5, initialMs: 0 },
        fallback: [createActingModel("b", answerWith("Hi"))],
      }),
    ];
    const first = createActingModel("a", failWith({}));
    const { answer } = await listAttempts(
      createAskingGraph(first, { retry: { attempts: 9, initialMs: 0 }, middleware }, { policies }),
    );
    expect(first.requests).toHaveLength(2);
    expect(answer?.answeredBy).toBe("b");
  });

  test.each<[string, unknown, string]>([
    ["an unknown part", { retries: 3 }, "retries"],
    ["an unknown limit", { timeouts: { firstMs: 3 } }, "firstMs"],
    ["no limit", { timeouts: { idleMs: 0 } }, "idleMs"],
    ["no policy", { retry: 3 }, "retry"],
    ["no attempts", { retry: { attempts: 0 } }, "retry policy"],
    ["an unknown kind", { retry: { attempts: 2, on: ["sometimes"] } }, "sometimes"],
    ["no wait", { retry: { attempts: 2, maxRetryAfterMs: -1 } }, "maxRetryAfterMs"],
    ["no model", { fallback: [7] }, "got 7"],
    ["no list", { fallback: { models: createActingModel("b") } }, "fallback"],
    ["an unknown kind of fallback", { fallback: { models: [], on: ["never"] } }, "never"],
  ])("modelCall of middleware is refused with the option: %s", async (_what, modelCall, said) => {
    const error = await getFailure(() => createPolicy("bad", modelCall as ModelCallPolicy) as never, "invalid_option");
    expect(error.message).toContain(said);
    expect(error.message).toContain("bad");
    const failing = run(createAskingGraph(createActingModel("a", answerWith("Hi")), modelCall as ModelCallPolicy), {
      input: createUserInput("Hi"),
    });
    await getFailure(failing.result, "invalid_option");
  });
});

describe("hook onFailedAttempt", () => {
  const createNotingHook = (observed: string[]) =>
    defineMiddleware({
      name: "noting",
      onFailedAttempt: ({ attempt: { model, kind, usage }, key }) => {
        observed.push(`${key}: ${model} ${kind} ${usage?.inputTokens ?? "unknown"}`);
      },
    });
  const paid = { kind: "overloaded", usage: { inputTokens: 4 } } as const;

  test("onFailedAttempt is called once per failed request, also when the model call fails for good and its node is retried", async () => {
    const log: string[] = [];
    const model = createActingModel("a", failWith(paid), failWith({ ...paid, retryable: false }), answerWith("Hi"));
    const node = { retry: { attempts: 2, initialMs: 1, jitter: 0, on: () => true } };
    const { answer } = await listAttempts(
      createAskingGraph(model, { retry: plain, middleware: [createNotingHook(log)] }, { node }),
    );
    expect(log).toEqual(["failed 1: a overloaded 4", "failed 2: a overloaded 4"]);
    expect(answer?.failedAttempts).toHaveLength(2);
  });

  test("onFailedAttempt is called by a resume for failed requests of another process under their original keys", async () => {
    const log: string[] = [];
    const store = memoryStore();
    const failing = createActingModel("a", failWith({ ...paid, retryable: false }));
    const graph = (model: typeof failing) => createAskingGraph(model, { middleware: [createNotingHook(log)] });
    await expect(run(graph(failing), { thread: "t", input: createUserInput("Hello"), store }).result).rejects.toThrow(
      "failed",
    );
    await resume(graph(createActingModel("a", answerWith("Hi"))), { thread: "t", store }).result;
    expect(log).toEqual(["failed 1: a overloaded 4", "failed 1: a unrecorded unknown"]);
  });

  test("onFailedAttempt is called for a replaced reply and for failed auxiliary model calls of a hook", async () => {
    const log: string[] = [];
    const asks = defineMiddleware({
      name: "asks",
      beforeModel: async (_, { ask }) => {
        const request = { messages: [], tools: [] };
        await ask("plan", { model: createActingModel("b", failWith(paid), answerWith("Plan")), request, retry: plain });
        return undefined;
      },
      aroundModel: async (request, next) => {
        await next(request);
        return next(request);
      },
    });
    await listAttempts(
      createAskingGraph(createActingModel("a", answerWith("Hi")), { middleware: [asks, createNotingHook(log)] }),
    );
    expect(log).toEqual([
      "model:asks:plan failed 1: b overloaded 4",
      "model:asks:plan failed 2: b auxiliary 3",
      "failed 1: a replaced 3",
    ]);
  });

  test("onFailedAttempt that throws fails the node with an error that names the middleware", async () => {
    const broken = defineMiddleware({
      name: "broken",
      onFailedAttempt: () => {
        throw new Error("oh");
      },
    });
    const { error } = await listAttempts(
      createAskingGraph(createActingModel("a", failWith(paid), answerWith("Hi")), {
        retry: plain,
        middleware: [broken],
      }),
    );
    expect(String(error)).toContain('onFailedAttempt of the middleware "broken" failed: oh');
  });
});
