/** A model that fails, hangs or breaks off: asked again, replaced by another, and what it streamed taken back. */
import { describe, expect, test } from "vitest";
import {
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
  messages,
  type NodeRuntime,
  type RunEvent,
  resume,
  run,
  START,
} from "../../src/index.ts";
import { acting, answerIn, asking, fails, failure, hangs, reply, saying, says } from "../support/asked-model.ts";
import { eventsOf, failureOf, leftToDie, only } from "../support/failure.ts";
import { type VirtualWorld, virtualWorld } from "../support/virtual-world.ts";

const plain = { attempts: 3, initialMs: 100, jitter: 0 } as const;
const long = 1_000_000;

/** Run a graph to its end on a clock that moves as far as it must. */
async function told(graph: ReturnType<typeof asking>, world: VirtualWorld = virtualWorld()) {
  const handle = run(graph, { world, input: saying("Hello") });
  const events = eventsOf(handle);
  const ending = handle.result.then(
    ({ state }) => ({ state, error: undefined }),
    (error: unknown) => ({ state: undefined, error }),
  );
  await world.advance(long);
  const { state, error } = await ending;
  expect(world.timers).toBe(0);
  return { events, error, answer: state === undefined ? undefined : answerIn(state) };
}

/** A node that asks the model once, and again at once where that may help. */
function asks(model: Model) {
  return async (state: { readonly messages: readonly Message[] }, { model: ask }: NodeRuntime) => ({
    messages: [
      await ask({ model, request: { messages: state.messages, tools: [] }, retry: { attempts: 2, initialMs: 0 } }),
    ],
  });
}

/** What a reader of the text sees, as it is given. */
async function textsOf(handle: { text(): AsyncIterable<string> }): Promise<string[]> {
  const texts: string[] = [];
  for await (const text of handle.text()) texts.push(text);
  return texts;
}

describe("retries of a model call", () => {
  test("a failure that may pass is asked about again, later each time, on the run's clock", async () => {
    const world = virtualWorld();
    const at: number[] = [];
    const noting = (act: ReturnType<typeof says>): ReturnType<typeof says> => {
      return (options, request) => {
        at.push(world.clock.monotonic());
        return act(options, request);
      };
    };
    const model = acting("a", noting(fails({ status: 503 })), noting(fails({ status: 500 })), noting(says("Hi")));
    const { answer, events } = await told(asking(model, { retry: plain }), world);
    expect(at).toEqual([0, 100, 300]);
    expect(answer?.content).toEqual([{ type: "text", text: "Hi" }]);
    expect(only(events, "model.retried")).toMatchObject([
      { attempt: 1, delayMs: 100, model: "a", next: "a", kind: "overloaded" },
      { attempt: 2, delayMs: 200, model: "a", next: "a", kind: "server_error", error: { code: "model_failed" } },
    ]);
    expect(only(events, "task.retried")).toEqual([]);
  });

  test("without a retry a request is made once", async () => {
    const model = acting("a", fails({ status: 503 }), says("Hi"));
    const { error } = await told(asking(model));
    expect(error).toMatchObject({ code: "model_failed" });
    expect(model.requests).toHaveLength(1);
  });

  test("the wait that a provider asks for is waited, and no longer one than is allowed", async () => {
    const waits = async (retryAfterMs: number, retry: ModelCallPolicy["retry"]) => {
      const model = acting("a", fails({ status: 429, retryAfterMs }), says("Hi"));
      const { events } = await told(asking(model, { ...(retry && { retry }) }));
      return only(events, "model.retried").map(({ delayMs }) => delayMs);
    };
    expect(await waits(7_000, plain)).toEqual([7_000]);
    expect(await waits(50, plain)).toEqual([100]);
    expect(await waits(60_000, plain)).toEqual([60_000]);
    expect(await waits(60_001, plain)).toEqual([]);
    expect(await waits(60_001, { ...plain, maxRetryAfterMs: 90_000 })).toEqual([60_001]);
  });

  test.each<[string, ModelCallPolicy["retry"], unknown, number]>([
    ["what the provider says is final", plain, failure({ retryable: false, status: 400 }), 1],
    ["what a client threw", plain, new Error("socket hang up"), 3],
    ["a mistake in the program", plain, new TypeError("x is not a function"), 1],
    ["a kind that is listed", { ...plain, on: ["auth"] }, failure({ retryable: false, status: 401 }), 3],
    ["a kind that is not listed", { ...plain, on: ["auth"] }, failure({ status: 503 }), 1],
    ["what a function says yes to", { ...plain, on: (error) => `${error}`.includes("odd") }, new TypeError("odd"), 3],
    ["what a function says no to", { ...plain, on: (_error, attempt) => attempt < 2 }, failure({ status: 503 }), 2],
  ])("%s", async (_what, retry, thrown, requests) => {
    const model = acting("a", () => Promise.reject(thrown));
    await told(asking(model, { ...(retry && { retry }) }));
    expect(model.requests).toHaveLength(requests);
  });

  test("a cancel ends the wait at once, and no request follows", async () => {
    const world = virtualWorld();
    const model = acting("a", fails({ status: 429, retryAfterMs: 5_000 }), says("Hi"));
    const handle = run(asking(model, { retry: plain }), { world, input: saying("Hello") });
    await world.advance(1_000);
    handle.cancel("enough");
    expect((await handle.result).status).toBe("cancelled");
    expect(world.timers).toBe(0);
    await world.advance(long);
    expect(model.requests).toHaveLength(1);
  });

  test("a wait is no silence of the node that waits", async () => {
    const model = acting("a", fails({ status: 429, retryAfterMs: 5_000 }), says("Hi"));
    const { answer, events } = await told(asking(model, { retry: plain }, { node: { idleTimeoutMs: 300 } }));
    expect(answer?.lost).toHaveLength(1);
    expect(only(events, "model.retried")).toMatchObject([{ delayMs: 5_000 }]);
  });

  test("hooks around the model are called once, whatever is asked again inside", async () => {
    const marks: string[] = [];
    const marking = defineMiddleware({
      name: "marking",
      beforeModel: () => void marks.push("before"),
      aroundModel: async (request, next) => {
        marks.push("in");
        const answer = await next(request);
        marks.push(`out after ${answer.lost?.length}`);
        return answer;
      },
      afterModel: () => void marks.push("after"),
    });
    const model = acting("a", fails({}), fails({}), says("Hi"));
    await told(asking(model, { retry: plain, middleware: [marking] }));
    expect(marks).toEqual(["before", "in", "out after 2", "after"]);
  });
});

describe("models that stand in", () => {
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
  test.each(kinds)("after a failure by %s another model is asked: %s", async (kind, stands) => {
    const first = acting("a", fails({ kind, retryable: false }));
    const second = acting("b", says("Hi from b"));
    const { answer, error, events } = await told(asking(first, { fallback: [second] }));
    expect(second.requests).toHaveLength(stands ? 1 : 0);
    if (!stands) expect(error).toMatchObject({ code: "model_failed" });
    else {
      expect(answer).toMatchObject({ answeredBy: "b", lost: [{ model: "a", kind }] });
      expect(only(events, "model.retried")).toMatchObject([{ model: "a", next: "b", delayMs: 0 }]);
    }
  });

  test("only after the kinds that are named", async () => {
    const fallback = { models: [acting("b", says("Hi"))], on: ["rate_limit"] } as const;
    const limited = await told(asking(acting("a", fails({ status: 429, retryable: false })), { fallback }));
    expect(limited.answer?.answeredBy).toBe("b");
    const broken = await told(asking(acting("a", fails({ status: 500, retryable: false })), { fallback }));
    expect(broken.error).toMatchObject({ code: "model_failed" });
  });

  test("not after a mistake in the program", async () => {
    const second = acting("b", says("Hi"));
    await told(
      asking(
        acting("a", () => Promise.reject(new TypeError("odd"))),
        { fallback: [second] },
      ),
    );
    expect(second.requests).toEqual([]);
  });

  test("a retry and a fallback add up and do not multiply", async () => {
    const models = ["a", "b", "c"].map((id) => acting(id, fails({})));
    const [first, ...fallback] = models;
    if (first === undefined) throw new Error("no model");
    const { error, events } = await told(asking(first, { retry: plain, fallback }));
    expect(models.map(({ requests }) => requests.length)).toEqual([3, 1, 1]);
    expect(error).toMatchObject({ code: "model_failed" });
    expect(only(events, "model.retried").map(({ next }) => next)).toEqual(["a", "a", "b", "c"]);
  });

  test("when all have failed the error is the last one, and tells of every request", async () => {
    const [big, small] = [acting("big", fails({ status: 529 })), acting("small", fails({ status: 401 }))];
    const { error } = await told(asking(big, { retry: { ...plain, attempts: 2 }, fallback: [small] }));
    expect(error).toMatchObject({
      code: "model_failed",
      message: expect.stringContaining("3 requests were made: big: overloaded, big: overloaded, small: auth"),
      details: { status: 401, lost: [{ model: "big" }, { model: "big" }, { model: "small", kind: "auth" }] },
    });
    const alone = await told(asking(acting("big", fails({ status: 529 }))));
    expect(alone.error).toMatchObject({ message: expect.not.stringContaining("requests were made") });
  });

  test("one that stands in may use what the first has left of the attempts", async () => {
    const first = acting("a", fails({ retryable: false, status: 401 }));
    const second = acting("b", fails({}), fails({}), says("Hi"));
    const { answer } = await told(asking(first, { retry: plain, fallback: [second] }));
    expect(second.requests).toHaveLength(3);
    expect(answer).toMatchObject({ answeredBy: "b" });
  });

  test("is asked at once where the provider wants a longer wait than is allowed", async () => {
    const first = acting("a", fails({ status: 429, retryAfterMs: 600_000 }));
    const { events } = await told(asking(first, { retry: plain, fallback: [acting("b", says("Hi"))] }));
    expect(only(events, "model.retried")).toMatchObject([{ next: "b", delayMs: 0 }]);
  });

  test("an answer that is no reply is a failure like others", async () => {
    const first = acting("a", () => Promise.resolve({ content: "Hi" } as never));
    const { answer } = await told(asking(first, { fallback: [acting("b", says("Hi"))] }));
    expect(answer).toMatchObject({ answeredBy: "b", lost: [{ model: "a", kind: "broken_reply" }] });
  });
});

describe("limits of time", () => {
  test("without a first token in time the model is asked again, and its signal fires", async () => {
    const world = virtualWorld();
    const reasons: unknown[] = [];
    const silent: ReturnType<typeof hangs> = (options, request) => {
      options.signal.addEventListener("abort", () => reasons.push(options.signal.reason));
      options.alive?.("ping");
      return hangs()(options, request);
    };
    const model = acting("a", silent, says("Hi"));
    const { answer, events } = await told(
      asking(model, { retry: plain, timeouts: { firstTokenMs: 2_000, idleMs: 50 } }),
      world,
    );
    expect(answer).toMatchObject({ lost: [{ model: "a", kind: "timeout" }] });
    expect(reasons).toMatchObject([{ code: "model_failed", details: { kind: "timeout", limit: "firstTokenMs" } }]);
    const [started, retried] = [only(events, "model.started")[0], only(events, "model.retried")[0]];
    expect((retried?.at ?? 0) - (started?.at ?? 0)).toBe(2_000);
  });

  test("silence in the middle of an answer is counted from part to part; a sign of life breaks it", async () => {
    const world = virtualWorld();
    const pause = (ms: number): Promise<void> => new Promise((resolve) => void world.schedule.after(ms, resolve));
    const slow: ReturnType<typeof says> = async ({ delta, alive }) => {
      for (const text of ["One ", "two "]) {
        await pause(80);
        delta?.({ type: "text", text });
      }
      await pause(80);
      alive?.("ping");
      await pause(80);
      return reply("One two ");
    };
    const model = acting("a", slow, hangs("One "), says("Hi"));
    const graph = asking(model, { retry: plain, timeouts: { idleMs: 100 } });
    expect((await told(graph, world)).answer?.lost).toBeUndefined();
    const second = await told(graph, world);
    expect(second.answer).toMatchObject({ lost: [{ kind: "timeout" }] });
    expect(only(second.events, "message.voided")).toMatchObject([{ kind: "timeout", text: "One " }]);
  });

  test("the whole call has its limit, waits and models that stand in included", async () => {
    const world = virtualWorld();
    const second = acting("b", says("Hi"));
    const first = acting("a", fails({}), hangs("One "));
    const { error } = await told(
      asking(first, { retry: { ...plain, initialMs: 400 }, fallback: [second], timeouts: { totalMs: 1_000 } }),
      world,
    );
    expect(error).toMatchObject({ details: { kind: "timeout", limit: "totalMs", retryable: false } });
    expect(second.requests).toEqual([]);
  });

  test("a wait that would end behind the limit is not begun", async () => {
    const first = acting("a", fails({ status: 429, retryAfterMs: 5_000 }), says("Hi"));
    const { error, events } = await told(asking(first, { retry: plain, timeouts: { totalMs: 1_000 } }));
    expect(error).toMatchObject({ details: { status: 429 } });
    expect(only(events, "model.retried")).toEqual([]);
  });

  test("what a model says after it was given up is told to nobody", async () => {
    const world = virtualWorld();
    let late: (() => void) | undefined;
    const model = acting(
      "a",
      ({ delta }) =>
        new Promise((resolve) => {
          delta?.({ type: "text", text: "One " });
          late = () => {
            delta?.({ type: "text", text: "two" });
            resolve(reply("One two"));
          };
        }),
      ({ delta }) => {
        late?.();
        delta?.({ type: "text", text: "Hi" });
        return reply("Hi");
      },
    );
    const { answer, events } = await told(asking(model, { retry: plain, timeouts: { idleMs: 100 } }), world);
    expect(only(events, "message.delta").map(({ text }) => text)).toEqual(["One ", "Hi"]);
    expect(answer?.content).toEqual([{ type: "text", text: "Hi" }]);
  });
});

describe("text that turns out to be void", () => {
  test("what a stream said before it died is taken back, and stands once in the conversation", async () => {
    const world = virtualWorld();
    const model = acting("a", fails({ kind: "broken_reply" }, "It is ", "rai"), says("It is ", "raining."));
    const handle = run(asking(model, { retry: plain }), { world, input: saying("Oslo?") });
    const events = eventsOf(handle);
    const texts = textsOf(handle);
    await world.advance(long);
    const { state } = await handle.result;
    const id = answerIn(state).id;
    expect(events.filter(({ type }) => type.startsWith("message."))).toMatchObject([
      { type: "message.delta", messageId: id, text: "It is " },
      { type: "message.delta", messageId: id, text: "rai" },
      { type: "message.voided", messageId: id, model: "a", kind: "broken_reply", text: "It is rai" },
      { type: "message.delta", messageId: id, text: "It is " },
      { type: "message.delta", messageId: id, text: "raining." },
      { type: "message.completed", message: { id, lost: [{ model: "a", kind: "broken_reply" }] } },
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

  test("text() says what it is told to say in place of void text, and nothing where nothing was given", async () => {
    const world = virtualWorld();
    const model = acting("a", fails({}), fails({}, "No"), says("Yes"));
    const handle = run(asking(model, { retry: plain }), { world, input: saying("Oslo?") });
    const texts = textsOf({ text: () => handle.text({ voided: (text) => "\b".repeat(text.length) }) });
    await world.advance(long);
    expect(await texts).toEqual(["No", "\b\b", "Yes"]);
  });

  test("text() begins a message on a line of its own, though its first request broke off before it said a word", async () => {
    const thinks = acting(
      "a",
      says("One."),
      ({ delta }) => {
        delta?.({ type: "reasoning", text: "Hm" });
        throw failure({ kind: "broken_reply" });
      },
      says("Two."),
    );
    const graph = defineGraph({ name: "twice", state: defineState({ messages: messages() }) })
      .nodes({ first: asks(thinks), second: asks(thinks) })
      .edges({ [START]: "first", first: "second", second: END });
    expect(await textsOf(run(graph, { input: saying("Go") }))).toEqual(["One.", "\nTwo."]);
  });

  test("text() gives what was not streamed when the message is whole", async () => {
    const whole = run(asking(acting("a", () => reply("All at once."))), { input: saying("Go") });
    expect(await textsOf(whole)).toEqual(["All at once."]);
    const partly = acting("a", ({ delta }) => {
      delta?.({ type: "text", text: "All " });
      return reply("All of it.");
    });
    expect(await textsOf(run(asking(partly), { input: saying("Go") }))).toEqual(["All ", "of it."]);
  });

  test("text() that is asked for in the middle of a message ends as the message does", async () => {
    let texts: Promise<string[]> | undefined;
    const model = acting("a", ({ delta }) => {
      delta?.({ type: "text", text: "One " });
      texts = textsOf(handle);
      delta?.({ type: "text", text: "two." });
      return reply("One two.");
    });
    const handle = run(asking(model), { input: saying("Go") });
    handle.on(() => undefined);
    await handle.result;
    expect(await texts).toEqual(["two."]);
  });

  test("a hook that asks again, or puts another text in place, voids what was streamed", async () => {
    const again = defineMiddleware({
      name: "again",
      aroundModel: async (request, next) => {
        await next(request);
        return next(request);
      },
    });
    const model = acting("a", says("First"), says("Second"));
    const asked = await told(asking(model, { middleware: [again] }));
    expect(only(asked.events, "message.voided")).toMatchObject([{ kind: "replaced", text: "First" }]);
    expect(asked.answer?.lost).toEqual([{ model: "a", kind: "replaced", usage: { inputTokens: 3, outputTokens: 2 } }]);

    const masked = defineMiddleware({ name: "masked", afterModel: (answer) => ({ ...answer, ...reply("***") }) });
    const handle = run(asking(acting("a", says("secret")), { middleware: [masked] }), { input: saying("Go") });
    expect(await textsOf(handle)).toEqual(["secret", "\n[The answer above broke off and does not count.]\n", "***"]);
  });

  test("a node that is given up in the middle of an answer, and tried again, doubles nothing", async () => {
    const world = virtualWorld();
    const model = acting("a", hangs("One "), says("One two."));
    const graph = asking(model, {}, { node: { idleTimeoutMs: 100, retry: { attempts: 2, initialMs: 1 } } });
    const { answer, events } = await told(graph, world);
    expect(only(events, "message.voided")).toMatchObject([{ kind: "cancelled", text: "One " }]);
    expect(answer?.lost).toEqual([{ model: "a", kind: "cancelled" }]);
  });

  test("a cancel takes back what was streamed", async () => {
    const world = virtualWorld();
    const handle = run(asking(acting("a", hangs("One "))), { world, input: saying("Go") });
    const events = eventsOf(handle);
    await world.settle();
    handle.cancel();
    await handle.result;
    expect(events.map(({ type }) => type).slice(-3)).toEqual(["message.voided", "task.failed", "run.cancelled"]);
  });

  test("what another process streamed before it died is void in the next, and both requests are reported", async () => {
    const owner = memoryStore();
    const heir = owner.peer();
    // Ids of models are not ours: one may hold what stands between them in the journal.
    const first = acting("a, 5%2C", fails({}, "One "), hangs("Two "));
    const dying = run(asking(first, { retry: { ...plain, initialMs: 0 } }), {
      store: owner,
      thread: "t",
      input: saying("Go"),
    });
    leftToDie(dying.result);
    for await (const event of dying.events()) if (event.type === "message.delta" && event.text === "Two ") break;
    await virtualWorld().settle();
    owner.crash();
    const handle = resume(asking(acting("a", says("Done."))), { store: heir, thread: "t" });
    const events: RunEvent[] = eventsOf(handle);
    const texts = textsOf(handle);
    const { state } = await handle.result;
    const { id, lost } = answerIn(state);
    expect(lost).toEqual([
      { model: "a, 5%2C", kind: "unrecorded" },
      { model: "a, 5%2C", kind: "unrecorded" },
    ]);
    expect(only(events, "message.voided")).toMatchObject([{ messageId: id, model: "a, 5%2C", kind: "unrecorded" }]);
    expect(await texts).toEqual(["Done."]);
    expect(state.messages).toHaveLength(2);
  });
});

describe("what is told of requests that gave nothing", () => {
  test("their cost where it is known, and no request holds the note", async () => {
    const sent: ModelRequest[] = [];
    const store = memoryStore();
    const model = acting("a", fails({ usage: { inputTokens: 11 } }), fails({}), (options, request) => {
      sent.push(request);
      return says("Hi")(options, request);
    });
    const graph = asking(model, { retry: { ...plain, initialMs: 0 } });
    const { state } = await run(graph, { store, thread: "t", input: saying("Hello") }).result;
    expect(answerIn(state).lost).toEqual([
      { model: "a", kind: "other", usage: { inputTokens: 11 } },
      { model: "a", kind: "other" },
    ]);
    await run(graph, {
      store,
      thread: "t",
      input: { messages: [{ ...saying("More").messages[0], id: "u2" } as never] },
    }).result;
    expect(sent[1]?.messages).toHaveLength(3);
    expect(JSON.stringify(sent)).not.toContain("lost");
  });

  test("a message that was given at once says nothing of it", async () => {
    const { answer } = await told(
      asking(acting("a", says("Hi")), { retry: plain, fallback: [acting("b", says("No"))] }),
    );
    expect(Object.keys(answer ?? {}).sort()).toEqual(["content", "finish", "id", "role", "usage"]);
  });
});

describe("middleware that says how models are asked", () => {
  const asks = (name: string, modelCall: ModelCallPolicy) => defineMiddleware({ name, modelCall });

  test("the outermost that says a part of it counts, and the rest is said by others", async () => {
    const policies = [asks("all", { retry: { attempts: 2, initialMs: 0 } })];
    const middleware = [asks("own", { retry: { attempts: 5, initialMs: 0 }, fallback: [acting("b", says("Hi"))] })];
    const first = acting("a", fails({}));
    const { answer } = await told(asking(first, { retry: { attempts: 9, initialMs: 0 }, middleware }, { policies }));
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
    ["no model", { fallback: ["b"] }, '"b"'],
    ["no list", { fallback: { models: acting("b") } }, "fallback"],
    ["an unknown kind of fallback", { fallback: { models: [], on: ["never"] } }, "never"],
  ])("refused: %s", async (_what, modelCall, said) => {
    const error = await failureOf(() => asks("bad", modelCall as ModelCallPolicy) as never, "invalid_option");
    expect(error.message).toContain(said);
    expect(error.message).toContain("bad");
    const failing = run(asking(acting("a", says("Hi")), modelCall as ModelCallPolicy), { input: saying("Hi") });
    await failureOf(failing.result, "invalid_option");
  });
});

describe("a hook that is told of lost requests", () => {
  const noting = (told: string[]) =>
    defineMiddleware({
      name: "noting",
      onLostAttempt: ({ attempt: { model, kind, usage }, key }) => {
        told.push(`${key}: ${model} ${kind} ${usage?.inputTokens ?? "unknown"}`);
      },
    });
  const paid = { kind: "overloaded", usage: { inputTokens: 4 } } as const;

  test("is told of each once, also where the call fails for good and its node is tried again", async () => {
    const log: string[] = [];
    const model = acting("a", fails(paid), fails({ ...paid, retryable: false }), says("Hi"));
    const node = { retry: { attempts: 2, initialMs: 1, jitter: 0, on: () => true } };
    const { answer } = await told(asking(model, { retry: plain, middleware: [noting(log)] }, { node }));
    expect(log).toEqual(["lost 1: a overloaded 4", "lost 2: a overloaded 4"]);
    expect(answer?.lost).toHaveLength(2);
  });

  test("is told by a resume of those that another process has made, under the keys that they had", async () => {
    const log: string[] = [];
    const store = memoryStore();
    const failing = acting("a", fails({ ...paid, retryable: false }));
    const graph = (model: typeof failing) => asking(model, { middleware: [noting(log)] });
    await expect(run(graph(failing), { thread: "t", input: saying("Hello"), store }).result).rejects.toThrow("failed");
    await resume(graph(acting("a", says("Hi"))), { thread: "t", store }).result;
    expect(log).toEqual(["lost 1: a overloaded 4", "lost 1: a unrecorded unknown"]);
  });

  test("is told of an answer that was replaced, and of what a hook has asked besides", async () => {
    const log: string[] = [];
    const asks = defineMiddleware({
      name: "asks",
      beforeModel: async (_, { ask }) => {
        const request = { messages: [], tools: [] };
        await ask("plan", { model: acting("b", fails(paid), says("Plan")), request, retry: plain });
        return undefined;
      },
      aroundModel: async (request, next) => {
        await next(request);
        return next(request);
      },
    });
    await told(asking(acting("a", says("Hi")), { middleware: [asks, noting(log)] }));
    expect(log).toEqual([
      "model:asks:plan lost 1: b overloaded 4",
      "model:asks:plan lost 2: b beside 3",
      "lost 1: a replaced 3",
    ]);
  });

  test("that throws fails the node by name", async () => {
    const broken = defineMiddleware({
      name: "broken",
      onLostAttempt: () => {
        throw new Error("oh");
      },
    });
    const { error } = await told(asking(acting("a", fails(paid), says("Hi")), { retry: plain, middleware: [broken] }));
    expect(String(error)).toContain('the hook onLostAttempt of the middleware "broken" failed: oh');
  });
});
