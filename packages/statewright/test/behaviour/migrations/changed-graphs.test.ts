/** Changed graphs with open runs: continued or parked, in memory and in a file. */
import {
  approval,
  channel,
  checkRuns,
  decide,
  defineGraph,
  defineMiddleware,
  defineMigration,
  defineState,
  defineTool,
  durableMachine,
  END,
  fanOut,
  getHistory,
  getState,
  inputNode,
  join,
  listInterrupts,
  resume,
  run,
  START,
  type Store,
  subgraph,
  toolNode,
} from "statewright";
import { listRuns } from "statewright/inspect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMachine, fromPromise } from "xstate";
import * as z from "zod";
import { getFailure, ignoreResult, type Place, places } from "../../support/both-stores.ts";

const Pay = defineState({ amount: z.number().default(100), log: channel.list(z.string()) });

const questions = { approve: z.object({ ok: z.boolean() }) };

/** Original graph: a payment with an approval. */
const first = defineGraph({ name: "payment", version: 1, state: Pay, interrupts: questions })
  .nodes({
    prepare: () => ({ log: ["prepared by 1"] }),
    approve: async (_state, { interrupt }) => ({
      log: [(await interrupt("approve")).ok ? "approved by 1" : "refused"],
    }),
    pay: (state) => ({ log: [`paid ${state.amount} by 1`] }),
  })
  .edges({ [START]: "prepare", prepare: "approve", approve: "pay", pay: END });

/** The graph with a renamed interrupt node. */
const renamed = defineGraph({ name: "payment", version: 2, state: Pay, interrupts: questions })
  .nodes({
    prepare: () => ({ log: ["prepared by 2"] }),
    confirm: async (_state, { interrupt }) => ({
      log: [(await interrupt("approve")).ok ? "approved by 2" : "refused"],
    }),
    pay: (state) => ({ log: [`paid ${state.amount} by 2`] }),
  })
  .edges({ [START]: "prepare", prepare: "confirm", confirm: "pay", pay: END });

/** The graph with an added node. */
const wider = defineGraph({ name: "payment", version: 2, state: Pay, interrupts: questions })
  .nodes({
    prepare: () => ({ log: ["prepared by 2"] }),
    approve: async (_state, { interrupt }) => ({
      log: [(await interrupt("approve")).ok ? "approved by 2" : "refused"],
    }),
    pay: (state) => ({ log: [`paid ${state.amount} by 2`] }),
    audit: () => ({ log: ["audited"] }),
  })
  .edges({ [START]: "prepare", prepare: "approve", approve: "pay", pay: "audit", audit: END });

/** Polls the store until a concurrent run has reached a state. */
async function waitFor(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
}

const yes = { approve: { ok: true } };

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let store: Store;
  beforeEach(() => {
    place = open();
    store = place.store;
  });
  afterEach(() => place.close());

  const writers = async (thread = "t") => {
    const found = await store.history(thread, { limit: 50 });
    return Promise.all(found.map(async ({ id }) => (await store.writtenBy(thread, id))?.version));
  };

  test("a renamed node with a pending approval parks the run, leaves the answer with the caller, and loses nothing [E50]", async () => {
    await run(first, { store, thread: "t" }).result;
    const before = await store.exportThread("t");
    const failure = await getFailure(resume(renamed, { store, thread: "t", answers: yes }).result, "needs_migration");
    expect(failure.message).toContain('the node "approve" is pending, but the graph has no such node');
    expect(failure.details).toMatchObject([
      { kind: "node", node: "approve" },
      { kind: "interrupt", node: "approve" },
    ]);
    const [parked, ...others] = await listRuns(store, { status: "parked" });
    expect(others).toEqual([]);
    expect(parked).toMatchObject({ thread: "t", graph: "payment", error: { code: "needs_migration" } });
    const after = await store.exportThread("t");
    expect(
      after.namespaces.map(({ checkpoints, effects, interrupts }) => ({ checkpoints, effects, interrupts })),
    ).toEqual(before.namespaces.map(({ checkpoints, effects, interrupts }) => ({ checkpoints, effects, interrupts })));
    await getFailure(resume(renamed, { store, thread: "t", answers: yes }).result, "needs_migration");
    const done = await resume(first, { store, thread: "t", answers: yes }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["prepared by 1", "approved by 1", "paid 100 by 1"] } });
  });

  test("a parked run fires no timer, is reported once, and has its timers again after it continues [E50]", async () => {
    const offer = (version: number, node: string) =>
      defineGraph({
        name: "offer",
        version,
        state: Pay,
        interrupts: { ok: { answer: z.string(), expiresMs: 3_600_000, onExpire: "nobody" } },
      })
        .nodes({
          [node]: async (_state: unknown, at: { interrupt: (key: "ok") => Promise<string> }) => ({
            log: [await at.interrupt("ok")],
          }),
        })
        .edges({ [START]: node, [node]: END } as never);
    const [old, now] = [offer(1, "ask"), offer(2, "demand")];
    await run(old, { store, thread: "t" }).result;
    const [due] = await store.timers({});
    await getFailure(resume(now, { store, thread: "t" }).result, "needs_migration");
    expect(await store.timers({})).toEqual([]);
    const observed = (await store.exportThread("t")).events.length;
    await getFailure(resume(now, { store, thread: "t" }).result, "needs_migration");
    expect((await store.exportThread("t")).events).toHaveLength(observed);
    await resume(old, { store, thread: "t" }).result;
    expect(await store.timers({})).toEqual([due]);
  });

  test("a graph changed at other nodes continues at once, and run.started names the version that wrote the thread [E50]", async () => {
    await run(first, { store, thread: "t" }).result;
    const events: unknown[] = [];
    const going = resume(wider, { store, thread: "t", answers: yes });
    going.on((event) => events.push(event));
    const done = await going.result;
    expect(done.state).toEqual({ amount: 100, log: ["prepared by 1", "approved by 2", "paid 100 by 2", "audited"] });
    expect(events).toContainEqual(
      expect.objectContaining({ type: "run.started", writtenBy: { version: 1, shape: expect.any(String) } }),
    );
    expect(await writers()).toEqual([2, 2, 2, 1, 1]);
    expect((await listRuns(store, { thread: "t" }))[0]?.version).toBe(2);
  });

  test("a thread written in a later format is refused and left unchanged [E50]", async () => {
    await run(first, { store, thread: "t" }).result;
    const image = await store.exportThread("t");
    expect(image.writtenBy).toEqual({ graph: "payment", version: 1, shape: expect.stringMatching(/^1:/) });
    const later = { graph: "payment", version: 1, shape: (image.writtenBy?.shape ?? "").replace("1:", "2:") };
    const lines = image.namespaces.map((line) => ({
      ...line,
      checkpoints: line.checkpoints.map((checkpoint) => ({ ...checkpoint, writtenBy: later })),
    }));
    await store.importThread({ ...image, id: "later", writtenBy: later, namespaces: lines });
    const before = await store.exportThread("later");
    await getFailure(resume(first, { store, thread: "later", answers: yes }).result, "store_newer");
    expect(await store.exportThread("later")).toEqual(before);
  });

  test("a channel that changed its kind parks the run, whatever its saved value [E50]", async () => {
    const ask = async (_state: unknown, { interrupt }: { readonly interrupt: (key: "ok") => Promise<boolean> }) =>
      void (await interrupt("ok"));
    const interrupts = { ok: z.boolean() };
    const edges = { [START]: "write", write: "ask", ask: END } as const;
    const Was = defineState({ notes: channel.list(z.string()), by: channel.record(z.number()) });
    const was = defineGraph({ name: "kinds", version: 1, state: Was, interrupts })
      .nodes({ write: () => ({ notes: ["a"], by: { ann: 1 } }), ask })
      .edges(edges);
    const sum = channel.reduce(z.number().default(5), (all, each: number) => all + each);
    const Is = defineState({ notes: sum, by: z.string().default("nobody") });
    const is = defineGraph({ name: "kinds", version: 2, state: Is, interrupts })
      .nodes({ write: () => ({ notes: 1, by: "ann" }), ask })
      .edges(edges);
    await run(was, { store, thread: "t" }).result;
    const failure = await getFailure(
      resume(is, { store, thread: "t", answers: { ok: true } }).result,
      "needs_migration",
    );
    expect(failure.details).toMatchObject([
      { kind: "channel", channel: "notes" },
      { kind: "channel", channel: "by" },
    ]);
    expect((await getState(is, { store, thread: "t" })).state).toEqual({ notes: ["a"], by: { ann: 1 } });
    const done = await resume(was, { store, thread: "t", answers: { ok: true } }).result;
    expect(done).toMatchObject({ status: "done", state: { notes: ["a"], by: { ann: 1 } } });
  });

  test("adding or removing parallel regions needs no migration", async () => {
    const shape = (version: number, parallel: boolean) =>
      defineGraph({ name: "g", version, state: Pay, interrupts: { ok: z.boolean() } })
        .nodes({
          ask: async (_state, { interrupt }) => void (await interrupt("ok")),
          left: () => ({ log: ["left"] }),
          right: () => ({ log: ["right"] }),
        })
        .edges({
          [START]: "ask",
          ask: parallel ? ["left", "right"] : "left",
          left: parallel ? END : "right",
          right: END,
        });
    for (const [thread, before] of [
      ["t", false],
      ["u", true],
    ] as const) {
      await run(shape(1, before), { store, thread }).result;
      const done = await resume(shape(2, !before), { store, thread, answers: { ok: true } }).result;
      expect(done.state.log).toEqual(["left", "right"]);
    }
  });

  test("an older graph passed with a newer version finishes runs incompatible with the newer version [E50]", async () => {
    await run(first, { store, thread: "t" }).result;
    const done = await resume(renamed, { store, thread: "t", answers: yes, older: [first] }).result;
    expect(done.state).toEqual({ amount: 100, log: ["prepared by 1", "approved by 1", "paid 100 by 1"] });
    expect(await writers()).toEqual([1, 1, 1, 1]);
    const next = await run(renamed, { store, thread: "t" }).result;
    expect(next).toMatchObject({ status: "waiting", interrupts: [{ node: "confirm" }] });
    expect((await writers())[0]).toBe(2);
  });

  test("a migration renames a node: a later approval reaches the node, and old checkpoints are kept [E50]", async () => {
    await run(first, { store, thread: "t" }).result;
    const before = await store.history("t", { limit: 10 });
    const migrations = [defineMigration({ from: first, to: renamed, nodes: { approve: "confirm" } })];
    const events: { readonly type: string }[] = [];
    const going = resume(renamed, { store, thread: "t", answers: yes, migrations });
    going.on((event) => events.push(event));
    const done = await going.result;
    expect(done.state).toEqual({ amount: 100, log: ["prepared by 1", "approved by 2", "paid 100 by 2"] });
    const after = await store.history("t", { limit: 10 });
    expect(after.slice(-before.length)).toEqual(before);
    expect(after.map(({ source }) => source)).toEqual(["step", "step", "migration", "step", "input"]);
    expect(events[0]).toMatchObject({ type: "step.committed", next: ["confirm"], nodes: [] });
    const observed = [];
    for await (const step of getHistory(renamed, { store, thread: "t" })) observed.push(step.source);
    expect(observed).toContain("migration");
  });

  test("a thread is migrated once, and a second resume finds it migrated", async () => {
    const migrations = [defineMigration({ from: first, to: renamed, nodes: { approve: "confirm" } })];
    await run(first, { store, thread: "t" }).result;
    expect((await resume(renamed, { store, thread: "t", migrations }).result).status).toBe("waiting");
    expect(await listInterrupts(store)).toMatchObject([{ thread: "t", node: "confirm", key: "approve" }]);
    expect((await resume(renamed, { store, thread: "t", answers: yes, migrations }).result).status).toBe("done");
    expect((await store.history("t", { limit: 10 })).filter(({ source }) => source === "migration")).toHaveLength(1);
  });

  /**
   * Checks the verdict of `checkRuns` for the open run; for a parked run, a resume with the same graph parks it with
   * the same verdict.
   */
  const verdict = async (graph: Parameters<typeof checkRuns>[1][number]) => {
    const [check, ...others] = await checkRuns(store, [graph]);
    expect(others).toEqual([]);
    if (check === undefined) throw new Error("no run is open");
    if (check.verdict !== "parks") return check.verdict;
    const failure = await getFailure(resume(graph, { store, thread: check.run.thread }).result, "needs_migration");
    expect(failure.message).toContain(check.reason);
    const [row] = await listRuns(store, { thread: check.run.thread });
    expect(row).toMatchObject({ status: "parked", error: { code: "needs_migration" } });
    return check.reason;
  };

  describe("incompatibilities", () => {
    interface Parts {
      readonly asks?: readonly "ok"[];
      readonly payload?: z.ZodType<number>;
      readonly item?: z.ZodType<string>;
    }
    const createAskingGraph = (
      version: number,
      { asks = ["ok"], payload = z.number(), item = z.string() }: Parts = {},
    ) =>
      defineGraph({
        name: "g",
        version,
        state: defineState({ log: channel.list(item) }),
        interrupts: { ok: { answer: z.string(), payload } },
      })
        .nodes({
          note: () => ({ log: ["noted"] }),
          wait: {
            interrupts: asks,
            run: async (_state, { interrupt }) => void (await interrupt("ok", { payload: 5 })),
          },
        })
        .edges({ [START]: "note", note: "wait", wait: END });

    test("an incompatible channel value, an incompatible payload and a removed interrupt are reported [F14]", async () => {
      await run(createAskingGraph(1), { store, thread: "t" }).result;
      expect(await verdict(createAskingGraph(2))).toBe("continues");
      expect(await verdict(createAskingGraph(2, { item: z.string().max(2) }))).toMatch(
        /^the value of channel "log" does not match its schema: 0: /,
      );
      expect(await verdict(createAskingGraph(2, { payload: z.number().max(4) }))).toMatch(
        /^the interrupt "ok" of the node "wait" has a payload that does not match its schema/,
      );
      const unasked = 'the interrupt "ok" of the node "wait" is open, but the node does not declare it now';
      expect(await verdict(createAskingGraph(2, { asks: [] }))).toBe(unasked);
      const silent = defineGraph({ name: "g", version: 2, state: defineState({ log: channel.list(z.string()) }) })
        .nodes({ note: () => ({}), wait: () => ({}) })
        .edges({ [START]: "note", note: "wait", wait: END });
      expect(await verdict(silent)).toBe(unasked);
      expect((await resume(createAskingGraph(3), { store, thread: "t", answers: { ok: "yes" } }).result).status).toBe(
        "done",
      );
    });

    test("an incompatible unconsumed answer and an incompatible recorded task result are reported", async () => {
      const two = (version: number, parts: { readonly answer?: z.ZodType<string>; readonly fails?: boolean } = {}) =>
        defineGraph({ name: "g", version, state: Pay, interrupts: { a: parts.answer ?? z.string() } })
          .nodes({
            one: () => ({ log: ["one"] }),
            two: async (_state, { interrupt }) => {
              const answer = await interrupt("a");
              if (parts.fails === true) throw new Error("broken");
              return { log: [answer] };
            },
          })
          .edges({ [START]: ["one", "two"], one: END, two: END });
      await run(two(1), { store, thread: "t" }).result;
      await getFailure(
        resume(two(1, { fails: true }), { store, thread: "t", answers: { a: "long" } }).result,
        "node_failed",
      );
      expect(await verdict(two(2, { answer: z.string().max(2) }))).toMatch(
        /^the interrupt "a" of the node "two" has an answer that does not match its schema/,
      );
      const without = defineGraph({
        name: "g",
        version: 2,
        state: defineState({ notes: channel.list(z.string()) }),
        interrupts: { a: z.string() },
      })
        .nodes({
          one: () => ({ notes: ["one"] }),
          two: async (_state, { interrupt }) => ({ notes: [await interrupt("a")] }),
        })
        .edges({ [START]: ["one", "two"], one: END, two: END });
      expect(await verdict(without)).toBe(
        'the recorded result of the node "one" writes the channel "log", which the state does not have',
      );
      const done = await resume(two(2), { store, thread: "t" }).result;
      expect(done.state).toMatchObject({ log: ["one", "long"] });
    });

    test("a required channel without a value is reported, and a removed channel keeps its saved value", async () => {
      const before = defineGraph({
        name: "g",
        version: 1,
        state: defineState({ a: z.string() }),
        interrupts: { ok: z.string() },
      })
        .nodes({ wait: async (_state, { interrupt }) => ({ a: await interrupt("ok") }) })
        .edges({ [START]: "wait", wait: END });
      await run(before, { store, thread: "t", input: { a: "kept" } }).result;
      const needy = defineGraph({
        name: "g",
        version: 2,
        state: defineState({ b: z.string() }),
        interrupts: { ok: z.string() },
      })
        .nodes({ wait: async (_state, { interrupt }) => ({ b: await interrupt("ok") }) })
        .edges({ [START]: "wait", wait: END });
      expect(await verdict(needy)).toBe('the channel "b" has no value and no default');
      const gone = defineGraph({ name: "g", version: 2, state: Pay, interrupts: { ok: z.string() } })
        .nodes({ wait: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }) })
        .edges({ [START]: "wait", wait: END });
      const done = await resume(gone, { store, thread: "t", answers: { ok: "yes" } }).result;
      expect(done.state).toEqual({ amount: 100, log: ["yes"] });
      const head = await store.head("t");
      expect(await store.state("t", head?.id ?? 0)).toContainEqual({
        channel: "a",
        deltas: [{ kind: "replace", text: '"kept"' }],
      });
    });

    test("an incompatible send input, a changed node kind and a half-filled join are reported, several at once", async () => {
      const spread = (version: number, input: z.ZodType<number>) =>
        defineGraph({ name: "sent", version, state: Pay, interrupts: { ok: z.string() } })
          .nodes({ each: inputNode(input, async (_state, { interrupt }) => ({ log: [await interrupt("ok")] })) })
          .edges({ [START]: fanOut("each", () => [7, 8]), each: END });
      await run(spread(1, z.number()), { store, thread: "sent" }).result;
      expect(await verdict(spread(2, z.number().max(7)))).toMatch(
        /^the input sent to the node "each" does not match its schema/,
      );
      const plain = defineGraph({ name: "sent", version: 2, state: Pay, interrupts: { ok: z.string() } })
        .nodes({ each: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }) })
        .edges({ [START]: "each", each: END });
      expect(await verdict(plain)).toContain('the node "each" was sent an input, but takes no input now');
      expect(await verdict(plain)).toContain("2 tasks are pending");
      await store.delete("sent");

      const joined = (version: number, isJoined: boolean) =>
        defineGraph({ name: "joined", version, state: Pay, interrupts: { ok: z.string() } })
          .nodes({
            quick: () => ({ log: ["quick"] }),
            slow: () => ({ log: ["slow"] }),
            asks: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
            end: () => ({ log: ["end"] }),
          })
          .edges({
            [START]: ["quick", "slow"],
            quick: isJoined ? join("end") : "end",
            slow: "asks",
            asks: join("end"),
            end: END,
          });
      await run(joined(1, true), { store, thread: "joined" }).result;
      expect(await verdict(joined(2, false))).toBe(
        '"quick" arrived at the join before "end", which no longer waits for that node',
      );
      const done = await resume(joined(2, true), { store, thread: "joined", answers: { ok: "yes" } }).result;
      expect(done.state).toMatchObject({ log: ["quick", "slow", "yes", "end"] });
    });

    test("an incompatible active subgraph is reported: its pending node and its subgraph node", async () => {
      const inner = (name: "scope" | "ask") =>
        defineGraph({ name: "inner", state: Pay, interrupts: { q: z.string() } })
          .nodes({
            [name]: async (_state: unknown, at: { interrupt: (key: "q") => Promise<string> }) => ({
              log: [await at.interrupt("q")],
            }),
          })
          .edges({ [START]: name, [name]: END } as never);
      const outer = (version: number, graph: ReturnType<typeof inner>) =>
        defineGraph({ name: "outer", version, state: Pay })
          .nodes({ research: subgraph(graph, { input: () => ({}), output: ({ log }) => ({ log }) }) })
          .edges({ [START]: "research", research: END });
      await run(outer(1, inner("scope")), { store, thread: "t" }).result;
      expect(await verdict(outer(2, inner("ask")))).toContain(
        'the node "research.scope" is pending, but the graph has no such node',
      );
      const plain = defineGraph({ name: "outer", version: 2, state: Pay })
        .nodes({ research: () => ({}) })
        .edges({ [START]: "research", research: END });
      expect(await verdict(plain)).toContain('the node "research" has a graph in progress, but runs no such graph now');
      const same = await resume(outer(2, inner("scope")), {
        store,
        thread: "t",
        answers: { "research.q": "yes" } as never,
      }).result;
      expect(same.state).toMatchObject({ log: ["yes"] });
    });

    test("a removed tool of a pending call and incompatible arguments shown for approval are reported [F14]", async () => {
      const send = (name: string, input: z.ZodObject) =>
        defineTool({ name, description: "Sends.", input, effect: "idempotent", run: () => "sent" });
      const asks = defineMiddleware({ name: "asks", beforeTool: ({ call }) => decide.interrupt(call, "a letter") });
      const agent = (version: number, name: string, input: z.ZodObject) =>
        defineGraph({
          name: "agent",
          version,
          state: defineState({ messages: channel.messages() }),
          interrupts: { approve: approval },
        })
          .nodes({
            model: ({ messages }) => (messages.length > 1 ? {} : { messages: [letter] }),
            tools: toolNode({ tools: [send(name, input)], middleware: [asks] }),
          })
          .edges({ [START]: "model", model: "tools", tools: END });
      const letter = {
        role: "assistant",
        id: "a",
        content: [{ type: "call", id: "c", name: "send", args: { to: "Ann" } }],
        finish: "calls",
      } as const;
      const input = z.object({ to: z.string() });
      await run(agent(1, "send", input), { store, thread: "t" }).result;
      expect(await verdict(agent(2, "post", input))).toBe(
        'the call "c" is for the tool "send", which the node "tools" does not have',
      );
      expect(await verdict(agent(2, "send", z.object({ to: z.string().max(2) })))).toMatch(
        /^the arguments of the call "c" do not match the tool "send"/,
      );
      expect(await verdict(agent(2, "send", input))).toBe("continues");
    });

    test("an incompatible deferred node, expiry answer and persistent subgraph state are reported", async () => {
      const gone = defineGraph({ name: "held", version: 2, state: Pay, interrupts: { ok: z.string() } })
        .nodes({
          split: () => ({}),
          ask: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
          again: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
        })
        .edges({ [START]: ["split", "ask"], split: END, ask: "again", again: END });
      const asksTwice = defineGraph({ name: "held", version: 1, state: Pay, interrupts: { ok: z.string() } })
        .nodes({
          split: () => ({}),
          ask: () => ({}),
          again: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
          sum: { defer: true, run: () => ({ log: ["sum"] }) },
        })
        .edges({ [START]: ["split", "ask"], split: "sum", ask: "again", again: END, sum: END });
      await run(asksTwice, { store, thread: "held" }).result;
      expect(await verdict(gone)).toBe('the node "sum" is pending, but the graph has no such node');
      await store.delete("held");

      const offer = (version: number, answer: z.ZodType<string>, onExpire: string) =>
        defineGraph({
          name: "offer",
          version,
          state: Pay,
          interrupts: { ok: { answer, expiresMs: 3_600_000, onExpire } },
        })
          .nodes({ ask: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }) })
          .edges({ [START]: "ask", ask: END });
      await run(offer(1, z.string(), "nobody"), { store, thread: "offer" }).result;
      expect(await verdict(offer(2, z.string().max(2), "no"))).toMatch(
        /^the interrupt "ok" of the node "ask" has an answer that does not match its schema/,
      );
      await store.delete("offer");

      const createPersistentGraph = (version: number, item: z.ZodType<string>) => {
        const inner = defineGraph({ name: "inner", state: defineState({ notes: channel.list(item) }) })
          .nodes({ note: () => ({ notes: ["long"] }) })
          .edges({ [START]: "note", note: END });
        return defineGraph({ name: "keeps", version, state: Pay, interrupts: { ok: z.string() } })
          .nodes({
            research: subgraph(inner, { input: () => ({}), output: () => ({}), persistence: "per-thread" }),
            ask: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
          })
          .edges({ [START]: "research", research: "ask", ask: END });
      };
      await run(createPersistentGraph(1, z.string()), { store, thread: "keeps" }).result;
      expect(await verdict(createPersistentGraph(2, z.string().max(2)))).toMatch(
        /^the value of channel "notes" of the graph in "research" does not match its schema/,
      );
    });

    test("a new input for a thread with an incompatible waiting run is refused as busy and parks nothing", async () => {
      await run(createAskingGraph(1), { store, thread: "t" }).result;
      const other = run(createAskingGraph(2, { item: z.string().max(2) }), { store, thread: "t" });
      await getFailure(other.result, "thread_busy");
      expect((await listRuns(store, { thread: "t" }))[0]?.status).toBe("waiting");
    });

    test("a recorded effect that the node can no longer produce is reported", async () => {
      const works = defineGraph({ name: "g", version: 1, state: Pay, interrupts: { ok: z.string() } })
        .nodes({
          work: async (_state, { step, interrupt }) => {
            await step("charge", () => 1);
            return { log: [await interrupt("ok")] };
          },
        })
        .edges({ [START]: "work", work: END });
      await run(works, { store, thread: "t" }).result;
      const inner = defineGraph({ name: "inner", state: Pay })
        .nodes({ a: () => ({}) })
        .edges({ [START]: "a", a: END });
      const nests = defineGraph({ name: "g", version: 2, state: Pay, interrupts: { ok: z.string() } })
        .nodes({ work: subgraph(inner, { input: () => ({}), output: () => ({}) }) })
        .edges({ [START]: "work", work: END });
      expect(await verdict(nests)).toContain(
        'the node "work" has recorded the step "charge", which a node of its kind cannot record',
      );
    });

    test("a removed state, actor or timer of a durable machine is reported before the machine moves [F14]", async () => {
      const createMachineGraph = (
        version: number,
        parts: { readonly state?: string; readonly src?: string; readonly ms?: number } = {},
      ) => {
        const { state = "waiting", src = "charge", ms = 60_000 } = parts;
        const actors = { [src]: fromPromise(() => new Promise(() => undefined)) };
        const states = {
          [state]: { invoke: { src, id: "work" }, after: { [ms]: "late" }, on: { GO: "late" } },
          late: { type: "final" },
        };
        const machine = createMachine({ id: "order", initial: state, states } as never).provide({ actors } as never);
        return durableMachine(machine, { version });
      };
      ignoreResult(run(createMachineGraph(1), { store, thread: "t" }).result);
      // The charge has started: its start is in the journal.
      await waitFor(async () => (await store.effects("t", "main")).length > 0);
      store = place.crash();
      expect(await verdict(createMachineGraph(2))).toBe("continues");
      expect(await verdict(createMachineGraph(2, { state: "paying" }))).toContain(
        'is in the state "waiting", which the current machine does not define',
      );
      expect(await verdict(createMachineGraph(2, { src: "bill" }))).toContain(
        'has a running actor "charge", which the current machine does not define',
      );
      expect(await verdict(createMachineGraph(2, { ms: 1_000 }))).toContain(
        'a timer for "xstate.after.60000.order.waiting" is pending',
      );
      const send = (answers: Readonly<Record<string, unknown>>) =>
        resume(createMachineGraph(2, { ms: 1_000 }), { store, thread: "t", answers, older: [createMachineGraph(1)] });
      // The event waits behind the doubt about the charge.
      expect(await send({ GO: true }).result).toMatchObject({ status: "waiting", delivered: [{ key: "GO" }] });
      expect((await send({ in_doubt: { happened: false } }).result).status).toBe("done");
    });
  });
});
