import {
  channel,
  commandTargets,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  fanOut,
  goto,
  inputNode,
  listToolCalls,
  type Model,
  memoryStore,
  route,
  START,
  toolNode,
} from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { type TestRunOf, testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const offline: Model = { id: "offline", respond: () => Promise.reject(new Error("there is no network here")) };

const refund = defineTool({
  name: "refund",
  description: "Return money for one order.",
  input: z.object({ orderId: z.string(), cents: z.int() }),
  effect: "idempotent",
  run: ({ cents }) => `Refunded ${cents} cents`,
});
const askFirst = defineMiddleware({
  name: "ask",
  beforeTool: ({ call: made }) => decide.interrupt(made, "it costs money"),
});

const shop = defineGraph({
  name: "shop",
  state: defineState({ messages: channel.messages() }),
  interrupts: { approve: z.boolean() },
})
  .nodes({
    model: async (state, runtime) => ({
      messages: [await runtime.model({ model: offline, request: { messages: state.messages, tools: [] } })],
    }),
    tools: toolNode({ tools: [refund], middleware: [askFirst] }),
  })
  .edges({
    [START]: "model",
    model: route(["tools", END], (state) => {
      const last = state.messages.at(-1);
      return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
    }),
    tools: "model",
  });

const words = {
  messages: [{ role: "user" as const, id: "u1", content: [{ type: "text" as const, text: "refund order 7" }] }],
};
const script = () => scriptedModel([call("refund", { orderId: "7", cents: 900 }), say("Done")]);

describe("transition tests", () => {
  test("a test run asks before paying and survives a crash [K9]", async () => {
    const t = await testRun(shop, { input: words, model: script(), clock: "virtual" });
    await t.until("interrupted");
    expect(t).toBeInState("tools.interrupted");
    expect(t.status).toBe("waiting");
    await t.crash();
    expect(t.interrupts).toMatchObject([{ key: "approve" }]);
    await t.resume({ approve: true });
    expect(t.trace).toPassThrough(["model", "tools.interrupted", "tools", "model", "done"]);
    expect(t.trace).toHaveCalledTools([{ name: "refund", args: { orderId: "7", cents: 900 } }]);
    expect(t.trace).toHaveRunOnce("refund");
    expect(t.trace).toHaveInterrupted("approve", expect.objectContaining({ reason: "it costs money" }));
    expect(t.trace).toHaveWritten("messages");
    expect(t.state.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  test("a failing matcher shows the path taken and the first difference [K9]", async () => {
    const t = await testRun(shop, { input: words, model: script() });
    await t.until("interrupted");
    await t.resume({ approve: true });
    expect(() =>
      expect(t.trace).toHaveCalledTools([{ name: "refund", args: { orderId: "8", cents: 900 } }]),
    ).toThrowErrorMatchingInlineSnapshot(`
      [Error: call 1 differs: expected refund {"orderId":"8","cents":900}, found refund {"orderId":"7","cents":900} (args.orderId is "7", not "8").
      The calls:
        1. refund {"orderId":"7","cents":900}
      The path: start → model → tools → tools.interrupted → tools → model → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(shop).toBeInState("model" as never)).toThrow("toBeInState: expected a test run");
  });

  test("unknown names of a graph do not compile in a test run", async () => {
    const t = await testRun(shop, { input: words, model: script() });
    // @ts-expect-error there is no node "tolls"
    expect(() => expect(t).toBeInState("tolls.interrupted")).toThrow();
    // @ts-expect-error nor a question "aprove"
    expect(() => expect(t.trace).toHaveInterrupted("aprove")).toThrow();
    // @ts-expect-error nor a channel "message"
    expect(() => expect(t.trace).toHaveWritten("message")).toThrow();
    // @ts-expect-error nor a tool "refunds"
    expect(() => expect(t.trace).toHaveCalledTools([{ name: "refunds" }])).toThrow();
    // @ts-expect-error nor a body "refunt"
    expect(() => expect(t.trace).toHaveRunOnce("refunt")).toThrow();
    // @ts-expect-error nor an edge to "tolls"
    expect(() => expect(t.trace).toTakeEdge("model", "tolls")).toThrow();
    // @ts-expect-error nor a question "aprove" that it could accept
    expect(() => expect(t).toAccept("aprove")).toThrow();
    // @ts-expect-error nor a tag "wating"
    expect(() => expect(t).toHaveTag("wating")).toThrow();
    // @ts-expect-error nor a state to wait for
    await expect(t.until("toolz")).rejects.toThrow('never reached "toolz"');
  });

  test("a trace is a snapshot without times and generated ids", async () => {
    const t = await testRun(shop, { input: words, model: script() });
    await t.until("interrupted");
    await t.crash();
    await t.resume({ approve: { approved: false } as never });
    expect(t.trace).toMatchInlineSnapshot(`
      start → model, wrote messages
      model done
      model → tools, wrote messages
      tools interrupted
      waits for approve
      (crash)
      (resume with approve)
      tools continues
      tools done
        refund failed
      tools → model, wrote messages
      model done
      model → done, wrote messages
      completed
    `);
  });

  test("a denied call reaches no tool", async () => {
    const t = await testRun(shop, { input: words, model: script() });
    await t.finish();
    await t.resume({ approve: false });
    expect(t.status).toBe("done");
    expect(t.trace.entries.filter((entry) => entry.type === "tool.executed")).toEqual([]);
  });
});

const steps = (effects: string[] = []) =>
  defineGraph({ name: "steps", state: defineState({ seen: channel.list(z.string()) }) })
    .nodes({
      one: () => {
        effects.push("one");
        return { seen: ["one"] };
      },
      two: async (_state, { step }) => {
        await step("recorded", () => effects.push("recorded"));
        effects.push("two");
        return { seen: ["two"] };
      },
      three: () => ({ seen: ["three"] }),
    })
    .edges({ [START]: "one", one: "two", two: "three", three: END });

describe("controlling a test run", () => {
  test("a test run starts and stops where the test says", async () => {
    const effects: string[] = [];
    const t = await testRun(steps(effects), {});
    expect(t).toBeInState("start");
    expect(t.status).toBe("ready");
    await t.until("two.committing");
    expect(t.state.seen).toEqual(["one"]);
    expect(t.status).toBe("held");
    await t.finish();
    expect(t.state.seen).toEqual(["one", "two", "three"]);
    expect(t).toBeInState("done");
    expect(effects).toEqual(["one", "recorded", "two"]);
  });

  test("a test run steps one superstep at a time", async () => {
    const t = await testRun(steps(), {});
    await t.step();
    expect([t.value, t.state.seen]).toEqual([{ one: "executing" }, []]);
    await t.step();
    expect([t.value, t.state.seen]).toEqual([{ two: "executing" }, ["one"]]);
    await t.step();
    await t.step();
    expect([t.value, t.status]).toEqual(["done", "done"]);
  });

  test("a test run stops at a predicate", async () => {
    const t = await testRun(steps(), {});
    await t.until((at) => at.state.seen.length === 2);
    expect(t).toBeInState("three");
  });

  test("after a crash unsaved work of a test run is repeated, and saved work stays", async () => {
    const effects: string[] = [];
    const t = await testRun(steps(effects), {});
    await t.until("two.committing");
    await t.crash();
    expect(t.state.seen).toEqual(["one"]);
    expect(t).toBeInState("two.executing");
    await t.resume();
    expect(t.state.seen).toEqual(["one", "two", "three"]);
    expect(effects).toEqual(["one", "recorded", "two", "recorded", "two"]);
    expect(t.trace).toPassThrough(["one", "two", "two", "three", "done"]);
    expect(() => expect(t.trace).toHaveRunOnce("two")).toThrow('"two" ran 2 times');
  });

  test("a crashed process of a test run does nothing more", async () => {
    let late = 0;
    const graph = defineGraph({ name: "slow", state: defineState({ seen: channel.list(z.string()) }) })
      .nodes({
        flaky: {
          run: () => {
            late += 1;
            throw new Error("again");
          },
          retry: { attempts: 5, initialMs: 1_000, jitter: 0 },
        },
      })
      .edges({ [START]: "flaky", flaky: END });
    const t = await testRun(graph, {});
    await t.until((at) => at.trace.entries.some((entry) => entry.type === "task.retried"));
    await t.crash();
    await t.resume(undefined, { until: (at) => at.trace.entries.at(-1)?.type === "task.retried" });
    expect(late).toBe(2);
  });

  test("waits of hours in a test run take no real time", async () => {
    const graph = defineGraph({ name: "patient", state: defineState({ seen: channel.list(z.string()) }) })
      .nodes({
        flaky: {
          run: (_state: unknown, { attempt }: { readonly attempt: number }) => {
            if (attempt < 4) throw new Error("again");
            return { seen: [`attempt ${attempt}`] };
          },
          retry: { attempts: 5, initialMs: 3_600_000, maxMs: 3_600_000, jitter: 0 },
        },
      })
      .edges({ [START]: "flaky", flaky: END });
    const t = await testRun(graph, {});
    await t.finish();
    expect(t.state.seen).toEqual(["attempt 4"]);
    expect(t.world.clock.monotonic()).toBe(3 * 3_600_000);
  });

  test("a test run that never reaches a state fails with its end", async () => {
    const t = await testRun(steps(), {});
    await expect(t.until("interrupted")).rejects.toThrow(
      'the run of graph "steps" never reached "interrupted": it is done.\nThe path: start → one → two → three → done',
    );
  });

  test("a test run rejects with the error of a failed run and continues after it", async () => {
    let broken = true;
    const graph = defineGraph({ name: "fails", state: defineState({ seen: channel.list(z.string()) }) })
      .nodes({
        fragile: () => {
          if (broken) throw new Error("out of order");
          return { seen: ["mended"] };
        },
      })
      .edges({ [START]: "fragile", fragile: END });
    const t = await testRun(graph, {});
    await t.until("failed");
    expect(t.error).toMatchObject({ code: "node_failed" });
    expect(t).toBeInState("fragile.failed");
    broken = false;
    await t.resume();
    expect(t.state.seen).toEqual(["mended"]);
    expect(t.trace).toPassThrough(["fragile", "fragile.failed", "fragile", "done"]);
  });

  test("a cancelled test run ends with status cancelled", async () => {
    const t = await testRun(steps(), {});
    await t.until("two");
    await t.cancel("enough");
    expect(t.status).toBe("cancelled");
  });

  test("parallel tasks have the same state names in a test run", async () => {
    const graph = defineGraph({
      name: "fan",
      state: defineState({ files: z.array(z.string()).default(["a", "b"]), found: channel.list(z.string()) }),
      interrupts: { ok: z.boolean() },
    })
      .nodes({
        plan: () => undefined,
        inspect: inputNode(z.string(), (_state, { input }) => ({ found: [input] })),
        ask: async (_state, { interrupt }) => ((await interrupt("ok")) ? goto("write") : goto("drop")),
        write: () => ({ found: ["written"] }),
        drop: () => undefined,
      })
      .edges({
        [START]: "plan",
        plan: fanOut("inspect", (state) => state.files, { otherwise: "ask" }),
        inspect: "ask",
        ask: commandTargets("write", "drop"),
        write: END,
        drop: END,
      });
    const t = await testRun(graph, {});
    await t.until("inspect.executing");
    expect(t).toBeInState("inspect");
    expect(t).toBeInState("plan.idle");
    await t.until("ask.interrupted");
    await t.crash();
    await t.resume({ ok: true });
    expect(t.trace).toPassThrough(["plan", "inspect", "ask", "ask.interrupted", "ask", "write", "done"]);
    expect(t.trace).toNeverVisit("drop");
    expect(t.trace).toHaveWritten("found", ["a", "b"]);
    expect(t.state.found).toEqual(["a", "b", "written"]);
  });
});

test("finish rejects with the error of a failed run", async () => {
  const broken = defineGraph({ name: "broken", state: defineState({ n: z.number().default(0) }) })
    .nodes({
      a: () => {
        throw new Error("out of order");
      },
    })
    .edges({ [START]: "a", a: END });
  const t = await testRun(broken, {});
  await expect(t.finish()).rejects.toThrow("out of order");
  expect(t.status).toBe("failed");
});

describe("state, effects and twins of a test run", () => {
  test("a store function that returns the crashed store is refused with the fix", async () => {
    const store = memoryStore();
    const t = await testRun(shop, { input: { messages: [] }, model: offline, store: () => store });
    await expect(t.crash()).rejects.toThrow(/Return a new store.+store: memoryStore\(\)/);
  });

  test("a graph recreated for each process loses its variables in a crash", async () => {
    const make = () => {
      const seen: string[] = [];
      return defineGraph({ name: "forgets", state: defineState({ seen: channel.list(z.string()) }) })
        .nodes({
          one: () => {
            seen.push("one");
            return { seen: [...seen] };
          },
          two: () => {
            seen.push("two");
            return { seen: [...seen] };
          },
        })
        .edges({ [START]: "one", one: "two", two: END });
    };
    const t = await testRun(make, {});
    await t.until("two");
    await t.crash();
    await t.resume();
    expect(t.state.seen).toEqual(["one", "two"]);
    const whole = await testRun(make, {});
    await whole.finish();
    expect(whole.state.seen).toEqual(["one", "one", "two"]);
  });

  test("a message sent to an active test run is delivered at the next boundary", async () => {
    const talk = defineGraph({ name: "talk", state: defineState({ messages: channel.messages() }) })
      .nodes({
        model: async (state, runtime) => ({
          messages: [await runtime.model({ model: offline, request: { messages: state.messages, tools: [] } })],
        }),
      })
      .edges({
        [START]: "model",
        model: route(["model", END], (state) => (state.messages.at(-1)?.role === "user" ? "model" : END)),
      });
    const model = scriptedModel((request) => say(`heard ${request.messages.length}`));
    const t = await testRun(talk, { input: words, model });
    await expect(t.send("too early")).rejects.toThrow("send: expected a started run, got a run that is ready");
    await t.until("model");
    await t.send("and order 8", { kind: "followUp" });
    await t.finish();
    expect(t.state.messages.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant"]);
  });

  test("a test run lists its effects with the number of executions and replays", async () => {
    const t = await testRun(steps(), {});
    await t.until("two.committing");
    await t.crash();
    await t.resume();
    expect(t.effects).toMatchObject([{ kind: "step", name: "recorded", executed: 2, reused: 0 }]);
    const asked = await testRun(shop, { input: words, model: script() });
    await asked.until("interrupted");
    await asked.resume({ approve: true });
    expect(asked.effects).toMatchObject([{ kind: "tool", name: "refund", executed: 1, reused: 0 }]);
  });

  test("a replayed step does not count as a second execution", async () => {
    const graph = defineGraph({
      name: "asks",
      state: defineState({ seen: channel.list(z.string()) }),
      interrupts: { ok: z.boolean() },
    })
      .nodes({
        ask: async (_state, { step, interrupt }) => {
          const price = await step("quote", () => "12");
          return { seen: [price, String(await interrupt("ok"))] };
        },
      })
      .edges({ [START]: "ask", ask: END });
    const t = await testRun(graph, {});
    await t.finish();
    await t.crash();
    await t.resume({ ok: true });
    expect(t.effects).toMatchObject([{ name: "quote", executed: 1, reused: 1 }]);
    expect(t).toHaveRunOnce({ step: "quote" });
    expect(t).toHaveInterruptedOnce("ok");
  });

  test("a test run shows the snapshot, tags and accepted events of its machine", async () => {
    const t = await testRun(shop, { input: words, model: script() });
    await t.until({ tag: "waiting" });
    expect(t.snapshot.matches({ tools: "interrupted" })).toBe(true);
    expect(t.snapshot.hasTag("waiting")).toBe(true);
    expect([t.tags, t.accepts, t.events]).toEqual([["waiting"], ["approve"], ["run.resumed", "step.commit"]]);
    await expect(t.until({ tag: "failed" })).rejects.toThrow('never reached a state with the tag "failed"');
  });

  test("a twin continues from the saved state and leaves the test run unchanged", async () => {
    const model = scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === "tool") ? say("Done") : call("refund", { orderId: "7", cents: 900 }),
    );
    const t = await testRun(shop, { input: words, model });
    await t.until("interrupted");
    const twin: TestRunOf<typeof shop> = await t.twin();
    await expect(twin.finish()).rejects.toThrow("Use resume() to continue");
    // @ts-expect-error an answer that does not fit
    const resumeWrong = (): Promise<void> => twin.resume({ approve: "no" });
    expect(resumeWrong).toBeTypeOf("function");
    await twin.resume({ approve: false });
    expect([twin.status, t.status]).toEqual(["done", "waiting"]);
    await t.resume({ approve: true });
    expect(t).toHaveRunOnce("refund");
    expect(twin).not.toHaveRunOnce("refund");
  });
});
