/** Subgraphs at any depth: rule E22 together with E19, E25, E26, E29, E31, E37 and E43. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineContext,
  defineGraph,
  defineState,
  END,
  fanOut,
  fork,
  getHistory,
  getState,
  goto,
  inputNode,
  join,
  memoryStore,
  type RunEvent,
  resume,
  run,
  START,
  type Store,
  subgraph,
} from "../../../src/index.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Notes = defineState({ topic: z.string(), notes: channel.list(z.string()) });

/** Inner graph: plans, raises an interrupt for the width, writes. */
function researcher(log: string[] = []) {
  const logWord = (word: string): string => {
    log.push(word);
    return word;
  };
  return defineGraph({
    name: "researcher",
    state: Notes,
    interrupts: { scope: z.object({ wide: z.boolean() }) },
  })
    .nodes({
      plan: (state) => ({ notes: [`${logWord("plan")} ${state.topic}`] }),
      ask: async (_state, { interrupt }) => {
        logWord("ask");
        const { wide } = await interrupt("scope", { payload: { why: "breadth" } });
        return { notes: [wide ? "wide" : "narrow"] };
      },
      write: (state) => ({ notes: [`${logWord("write")} after ${state.notes.length}`] }),
    })
    .edges({ [START]: "plan", plan: "ask", ask: "write", write: END });
}

const Report = defineState({ question: z.string(), notes: channel.list(z.string()) });

function report(log: string[] = []) {
  return defineGraph({ name: "report", state: Report })
    .nodes({
      research: subgraph(researcher(log), {
        input: (state) => ({ topic: state.question }),
        output: (result) => ({ notes: result.notes }),
      }),
      close: () => ({ notes: ["closed"] }),
    })
    .edges({ [START]: "research", research: "close", close: END });
}

const passOn = {
  input: (state: { readonly question: string }) => ({ question: state.question }),
  output: (result: { readonly notes: readonly string[] }) => ({ notes: result.notes }),
};

/** Outer graph that calls the report graph as a subgraph. */
function two(log: string[] = []) {
  return defineGraph({ name: "two", state: Report })
    .nodes({ research: subgraph(report(log), passOn), close: () => ({ notes: ["closed 2"] }) })
    .edges({ [START]: "research", research: "close", close: END });
}

function three() {
  return defineGraph({ name: "three", state: Report })
    .nodes({ research: subgraph(two(), passOn), close: () => ({ notes: ["closed 3"] }) })
    .edges({ [START]: "research", research: "close", close: END });
}

const written = ["plan bees", "wide", "write after 2", "closed"];

test("a subgraph call maps input and output, passes its interrupt out, and continues after the answer [E22]", async () => {
  const log: string[] = [];
  const store = memoryStore();
  const first = await run(report(log), { store, thread: "t", input: { question: "bees", notes: ["start"] } }).result;
  expect(first).toMatchObject({
    status: "waiting",
    interrupts: [
      { key: "research.scope", node: "research.ask", payload: { why: "breadth" }, schema: { type: "object" } },
    ],
  });
  const second = await resume(report(log), { store, thread: "t", answers: { "research.scope": { wide: true } } })
    .result;
  expect(second.status).toBe("done");
  // The subgraph returns a delta: earlier list items occur once.
  expect(second.state.notes).toEqual(["start", ...written]);
  expect(log).toEqual(["plan", "ask", "ask", "write"]);
});

test("answers by id and all refusals apply to an interrupt inside a subgraph [E22]", async () => {
  const store = memoryStore();
  const graph = report();
  const first = await run(graph, { store, thread: "t", input: { question: "bees" } }).result;
  const [asked] = first.status === "waiting" ? first.interrupts : [];
  const id = asked?.id ?? "";
  const answer = (answers: Record<string, unknown>) => resume(graph, { store, thread: "t", answers }).result;
  await getFailure(answer({ "research.scope": { wide: "yes" } }), "invalid_answer");
  await getFailure(answer({ scope: { wide: true } }), "unknown_interrupt");
  const done = await answer({ [id]: { wide: false } });
  expect(done.state.notes).toContain("narrow");
  const late = await getFailure(answer({ "research.scope": { wide: true } }), "already_answered");
  expect(late.details).toMatchObject({ answer: { wide: false } });
});

test("an interrupt three subgraphs deep is answered through every machine on its path [E22]", async () => {
  const store = memoryStore();
  const graph = three();
  const first = await run(graph, { store, thread: "t", input: { question: "bees" } }).result;
  expect(first).toMatchObject({
    interrupts: [{ key: "research.research.research.scope", node: "research.research.research.ask" }],
  });
  const handle = resume(graph, { store, thread: "t", answers: { "research.research.research.scope": { wide: true } } });
  const events = collectEvents(handle);
  const { state } = await handle.result;
  expect(state.notes).toEqual([...written, "closed 2", "closed 3"]);
  const paths = new Set(getOnlyEvent(events, "transition.taken").map(({ path }) => path.join(" ")));
  expect(paths).toContain("three research research research");
  const deepest = getOnlyEvent(events, "step.committed").filter(
    ({ within }) => within === "research.research.research",
  );
  expect(deepest.map(({ nodes }) => nodes)).toEqual([["ask"], ["write"]]);
});

test("a crash at any commit at any subgraph depth ends like an uninterrupted run and repeats no completed step [E22]", async () => {
  const steps: string[] = [];
  const Work = defineState({ items: z.array(z.string()), done: channel.list(z.string()) });
  const part = defineGraph({ name: "part", state: defineState({ item: z.string(), said: channel.list(z.string()) }) })
    .nodes({
      first: async (state, { step }) => ({ said: [await step("one", () => count(`${state.item}1`))] }),
      second: async (state, { step }) => ({ said: [await step("two", () => count(`${state.item}2`))] }),
    })
    .edges({ [START]: "first", first: "second", second: END });
  const count = (what: string): string => {
    steps.push(what);
    return what;
  };
  const middle = defineGraph({ name: "middle", state: Work })
    .nodes({
      part: inputNode(
        z.string(),
        subgraph(part, {
          input: (_state, { input }) => ({ item: input }),
          output: (result) => ({ done: result.said }),
        }),
      ),
      last: () => ({ done: ["last"] }),
    })
    .edges({ [START]: fanOut("part", (state) => state.items), part: "last", last: END });
  const graph = defineGraph({ name: "whole", state: Work })
    .nodes({
      call: subgraph(middle, { input: (state) => ({ items: state.items }), output: ({ done }) => ({ done }) }),
      beside: () => ({ done: ["beside"] }),
      end: () => undefined,
    })
    .edges({ [START]: ["call", "beside"], call: join("end"), beside: join("end"), end: END });
  const input = { items: ["a", "b", "c"] };
  const alone = await run(graph, { store: memoryStore(), input }).result;
  expect(alone.state.done).toEqual(["a1", "a2", "b1", "b2", "c1", "c2", "last", "beside"]);
  let crashes = 0;
  for (let nth = 1; nth < 60; nth++) {
    for (const after of [false, true]) {
      steps.length = 0;
      const whole = memoryStore();
      const { store } = createCrashingStore(whole, nth, after ? "after" : "before");
      const first = run(graph, { store, thread: "t", input });
      ignoreResult(first.result);
      for (let turn = 0; turn < 40; turn++) await createVirtualWorld().waitUntilIdle();
      const peer = whole.peer();
      if ((await peer.thread("t"))?.status === "done") continue;
      crashes += 1;
      const started = steps.length;
      const recorded = await Promise.all((await listLines(peer)).map((line) => peer.effects("t", line)));
      const head = await peer.head("t");
      const rest =
        head === undefined
          ? run(graph, { store: peer, thread: "t", input })
          : resume(graph, { store: peer, thread: "t" });
      const { state } = await rest.result;
      expect(state.done, `${after ? "after" : "before"} commit ${nth}`).toEqual(alone.state.done);
      const known = recorded.flat().filter(({ kind, state: was }) => kind === "step" && was === "ok");
      for (const { task, key } of known) expect(steps.slice(started), `${task} ${key}`).not.toContain(undefined);
      expect(steps.length - started).toBeLessThanOrEqual(6);
    }
  }
  expect(crashes).toBeGreaterThan(20);
});

async function listLines(store: Store): Promise<readonly string[]> {
  const head = await store.head("t");
  return head === undefined ? [] : ["main", "main/0:0"];
}

test("sends run a subgraph in parallel, and each call has its own state and interrupt [E22]", async () => {
  const store = memoryStore();
  const graph = defineGraph({
    name: "many",
    state: defineState({ topics: z.array(z.string()), notes: channel.list(z.string()) }),
  })
    .nodes({
      research: inputNode(
        z.string(),
        subgraph(researcher(), {
          input: (_state, { input }) => ({ topic: input }),
          output: (result, { input }) => ({ notes: [`${input}: ${result.notes.join(", ")}`] }),
        }),
      ),
    })
    .edges({ [START]: fanOut("research", (state) => state.topics), research: END });
  const first = await run(graph, { store, thread: "t", input: { topics: ["bees", "ants"] } }).result;
  const open = first.status === "waiting" ? first.interrupts : [];
  expect(open.map(({ key }) => key)).toEqual(["research.scope", "research.scope"]);
  const both = { "research.scope": { wide: true } };
  await getFailure(resume(graph, { store, thread: "t", answers: both }).result, "ambiguous_answer");
  const one = { [open[1]?.id ?? ""]: { wide: false } };
  const second = await resume(graph, { store, thread: "t", answers: one }).result;
  expect(second.status).toBe("waiting");
  const { state } = await resume(graph, { store, thread: "t", answers: both }).result;
  expect(state.notes).toEqual(["bees: plan bees, wide, write after 2", "ants: plan ants, narrow, write after 2"]);
});

test("the output mapping of a subgraph may return a command that routes the outer graph [E22]", async () => {
  const judge = defineGraph({
    name: "judge",
    state: defineState({ score: z.number(), good: z.boolean().default(false) }),
  })
    .nodes({ look: (state) => ({ good: state.score > 5 }) })
    .edges({ [START]: "look", look: END });
  const graph = defineGraph({ name: "outer", state: defineState({ score: z.number(), log: channel.list(z.string()) }) })
    .nodes({
      judged: subgraph(judge, {
        input: ({ score }) => ({ score }),
        output: ({ good }) => (good ? goto("ship", { log: ["good"] }) : goto("fix")),
      }),
      fix: () => ({ log: ["fix"] }),
      ship: () => ({ log: ["ship"] }),
    })
    .edges({ [START]: "judged", judged: commandTargets("fix", "ship"), fix: END, ship: END });
  expect((await run(graph, { input: { score: 7 } }).result).state.log).toEqual(["good", "ship"]);
  expect((await run(graph, { input: { score: 3 } }).result).state.log).toEqual(["fix"]);
});

const Counter = defineState({ by: z.number(), total: z.number().default(0), seen: channel.list(z.number()) });
const counter = defineGraph({ name: "counter", state: Counter })
  .nodes({ add: (state) => ({ total: state.total + state.by, seen: [state.by] }) })
  .edges({ [START]: "add", add: END });

function loop(persistence: "per-call" | "per-thread" | "none") {
  return defineGraph({ name: "loop", state: defineState({ turns: channel.list(z.number()), goal: z.number() }) })
    .nodes({
      count: subgraph(counter, {
        persistence,
        input: (state) => ({ by: state.turns.length + 1 }),
        output: (result) => ({ turns: [result.total] }),
      }),
      look: (state) => (state.turns.length < state.goal ? goto("count") : goto(END)),
    })
    .edges({ [START]: "count", count: "look", look: commandTargets("count", END) });
}

test("a subgraph call starts with fresh state unless its state persists across calls [E22]", async () => {
  const totals = async (persistence: "per-call" | "per-thread" | "none", store?: Store) =>
    (await run(loop(persistence), { ...(store && { store }), thread: "t", input: { goal: 3 } }).result).state.turns;
  for (const store of [undefined, memoryStore()]) {
    expect(await totals("per-call", store)).toEqual([1, 2, 3]);
  }
  for (const store of [undefined, memoryStore()]) expect(await totals("none", store)).toEqual([1, 2, 3]);
  for (const store of [undefined, memoryStore()]) expect(await totals("per-thread", store)).toEqual([1, 3, 6]);
});

test("a persistent subgraph continues with the next input of the thread, in another process, and on a fork from the fork point [E22]", async () => {
  const store = memoryStore();
  await run(loop("per-thread"), { store, thread: "t", input: { goal: 2 } }).result;
  const peer = store.peer();
  await store.close();
  const { state } = await run(loop("per-thread"), { store: peer, thread: "t", input: { goal: 3 } }).result;
  expect(state.turns).toEqual([1, 3, 6]);
  const entries = [];
  for await (const entry of getHistory(loop("per-thread"), { store: peer, thread: "t" })) entries.push(entry);
  const first = entries.findLast(({ node }) => node === "count");
  const at = first?.checkpointId ?? 0;
  const branch = await fork(loop("per-thread"), { store: peer, thread: "t", at, name: "again", update: { goal: 2 } });
  const again = await resume(loop("per-thread"), { store: peer, thread: "t", branch }).result;
  expect(again.state.turns).toEqual([1, 3]);
  const deeper = await fork(loop("per-thread"), {
    store: peer,
    thread: "t",
    at: entries[0]?.checkpointId ?? 0,
    name: "on",
  });
  const on = await run(loop("per-thread"), { store: peer, thread: "t", branch: deeper, input: { goal: 4 } }).result;
  expect(on.state.turns).toEqual([1, 3, 6, 10]);
  expect((await getState(counter, { store: peer, thread: "t", nesting: "count", branch: "again" })).state.seen).toEqual(
    [1, 2],
  );
});

test("an unsaved subgraph writes no row, restarts after a crash, and may neither interrupt nor use once effects [E22]", async () => {
  const store = memoryStore();
  await run(loop("none"), { store, thread: "t", input: { goal: 2 } }).result;
  const steps = [];
  for await (const entry of getHistory(counter, { store, thread: "t", nesting: "count" })) steps.push(entry);
  expect(steps).toEqual([]);
  const wrap = (inner: typeof counter) =>
    defineGraph({ name: "w", state: Counter })
      .nodes({ count: subgraph(inner, { persistence: "none", input: ({ by }) => ({ by }), output: () => undefined }) })
      .edges({ [START]: "count", count: END });
  const asks = defineGraph({ name: "asks", state: Counter, interrupts: { ok: z.boolean() } })
    .nodes({ add: () => undefined })
    .edges({ [START]: "add", add: END });
  const once = defineGraph({ name: "once", state: Counter })
    .nodes({ add: { effect: "once", run: () => undefined } })
    .edges({ [START]: "add", add: END });
  for (const inner of [asks, once]) {
    const refusal = await getFailure(() => wrap(inner), "invalid_graph");
    expect(refusal.details).toMatchObject([{ code: "unpersisted_subgraph", node: "count" }]);
  }
  const stepsOnce = defineGraph({ name: "steps", state: Counter })
    .nodes({ add: async (_state, { step }) => void (await step("pay", () => 1, { effect: "once" })) })
    .edges({ [START]: "add", add: END });
  const failure = await getFailure(
    run(wrap(stepsOnce), { store, thread: "s", input: { by: 1 } }).result,
    "missing_store",
  );
  expect(failure.message).toContain('"count"');
  // A run without a store saves nothing.
  expect((await run(wrap(stepsOnce), { input: { by: 1 } }).result).status).toBe("done");
});

test("unsafe subgraph definitions are refused together [E22]", async () => {
  const failure = await getFailure(
    () =>
      defineGraph({ name: "w", state: Counter })
        .nodes({
          kept: inputNode(
            z.number(),
            subgraph(counter, {
              persistence: "per-thread",
              input: (_state, { input }) => ({ by: input }),
              output: () => undefined,
            }),
          ),
          once: { effect: "once", run: subgraph(counter, { input: ({ by }) => ({ by }), output: () => undefined }) },
        })
        .edges({ [START]: fanOut("kept", () => [1, 2], { otherwise: "once" }), kept: END, once: END }),
    "invalid_graph",
  );
  expect(failure.details).toMatchObject([
    { code: "persistent_subgraph_sent", node: "kept" },
    { code: "once_subgraph", node: "once" },
  ]);
});

test("a subgraph failure names both places, the outer node retries, and completed inner steps do not rerun [E22]", async () => {
  const log: string[] = [];
  let broken = 2;
  const inner = defineGraph({ name: "inner", state: Notes })
    .nodes({
      one: () => {
        log.push("one");
        return { notes: ["one"] };
      },
      two: () => {
        log.push("two");
        if (broken-- > 0) throw new Error("the line is down");
        return { notes: ["two"] };
      },
    })
    .edges({ [START]: "one", one: "two", two: END });
  const outer = (attempts: number) =>
    defineGraph({ name: "outer", state: Report })
      .nodes({
        call: {
          run: subgraph(inner, {
            input: (state) => ({ topic: state.question }),
            output: ({ notes }) => ({ notes }),
          }),
          retry: { attempts },
        },
      })
      .edges({ [START]: "call", call: END });
  const world = createVirtualWorld();
  const store = memoryStore();
  const failure = await getFailure(
    run(outer(1), { store, world, thread: "t", input: { question: "q" } }).result,
    "node_failed",
  );
  expect(failure.place).toMatchObject({ graph: "inner", nesting: "call", node: "two", thread: "t", attempt: 1 });
  expect(failure.cause).toMatchObject({ message: "the line is down" });
  for (const resumeStore of [store, undefined]) {
    log.length = 0;
    broken = 1;
    const handle =
      resumeStore === undefined
        ? run(outer(3), { world, input: { question: "q" } })
        : resume(outer(3), { store: resumeStore, world, thread: "t" });
    const ended = handle.result;
    for (let turn = 0; turn < 10; turn++) await world.advance(10_000);
    expect((await ended).state.notes).toEqual(["one", "two"]);
    expect(log).toEqual(resumeStore === undefined ? ["one", "two", "two"] : ["two", "two"]);
  }
});

test("the error handler of the outer node gets the failure of the subgraph [E22]", async () => {
  const inner = defineGraph({ name: "inner", state: Notes })
    .nodes({
      one: () => {
        throw new Error("no");
      },
    })
    .edges({ [START]: "one", one: END });
  const graph = defineGraph({ name: "outer", state: Report })
    .nodes({
      call: {
        run: subgraph(inner, { input: (state) => ({ topic: state.question }), output: () => undefined }),
        onError: (_state, { error }) => ({ notes: [`${error.place.nesting}: ${error.code}`] }),
      },
    })
    .edges({ [START]: "call", call: END });
  const { state } = await run(graph, { input: { question: "q" } }).result;
  expect(state.notes).toEqual(["call: node_failed"]);
});

test("a cancel reaches every subgraph depth, starts no further work, and a resume continues inside [E22]", async () => {
  const started = createDeferred();
  const signals: AbortSignal[] = [];
  let ready = false;
  const inner = defineGraph({ name: "inner", state: Notes })
    .nodes({
      one: () => ({ notes: ["one"] }),
      two: async (_state, { signal }) => {
        if (ready) return { notes: ["two"] };
        signals.push(signal);
        started.resolve();
        return new Promise<undefined>(() => undefined);
      },
    })
    .edges({ [START]: "one", one: "two", two: END });
  const pass = {
    input: ({ topic }: { readonly topic: string }) => ({ topic }),
    output: ({ notes }: { readonly notes: readonly string[] }) => ({ notes }),
  };
  const around = defineGraph({ name: "around", state: Notes })
    .nodes({ call: subgraph(inner, pass) })
    .edges({ [START]: "call", call: END });
  const graph = defineGraph({ name: "outermost", state: Notes })
    .nodes({ call: subgraph(around, pass) })
    .edges({ [START]: "call", call: END });
  const store = memoryStore();
  const handle = run(graph, { store, thread: "t", input: { topic: "x" } });
  await started.promise;
  handle.cancel("enough");
  expect(await handle.result).toMatchObject({ status: "cancelled", reason: "enough" });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  ready = true;
  const { state } = await resume(graph, { store, thread: "t" }).result;
  expect(state.notes).toEqual(["one", "two"]);
});

test("a timed-out subgraph call has stopped before its next attempt, which continues where the call stopped [E22]", async () => {
  const world = createVirtualWorld();
  let slow = true;
  const log: string[] = [];
  const inner = defineGraph({ name: "inner", state: Notes })
    .nodes({
      one: () => ({ notes: ["one"] }),
      two: async (_state, { signal }) => {
        log.push("two");
        signal.addEventListener("abort", () => log.push("aborted"));
        if (slow) await new Promise(() => undefined);
        return { notes: ["two"] };
      },
    })
    .edges({ [START]: "one", one: "two", two: END });
  const graph = defineGraph({ name: "outer", state: Report })
    .nodes({
      call: {
        run: subgraph(inner, { input: (state) => ({ topic: state.question }), output: ({ notes }) => ({ notes }) }),
        timeoutMs: 100,
        retry: { attempts: 2, initialMs: 10, jitter: 0 },
      },
    })
    .edges({ [START]: "call", call: END });
  const { result } = run(graph, { store: memoryStore(), world, thread: "t", input: { question: "q" } });
  await world.advance(99);
  slow = false;
  await world.advance(100);
  expect((await result).state.notes).toEqual(["one", "two"]);
  expect(log).toEqual(["two", "aborted", "two"]);
});

test("events of an inner graph carry its path, in order, and include no end of the run [E22]", async () => {
  const handle = run(report(), { store: memoryStore(), thread: "t", input: { question: "bees" } });
  const events = collectEvents(handle);
  await handle.result;
  const inside = events.filter((event: RunEvent) => event.within !== undefined);
  expect(inside.every(({ within }) => within === "research")).toBe(true);
  expect(new Set(inside.map(({ type }) => type.split(".")[0]))).not.toContain("run");
  expect(events.filter(({ type }) => type === "run.started")).toHaveLength(1);
  const durable = getOnlyEvent(events, "step.committed").map(({ seq }) => seq);
  expect(durable).toEqual(durable.map((_, index) => index + (durable[0] ?? 0)));
});

test("parallel subgraphs emit no event with the number of a durable event that was not emitted yet", async () => {
  const inner = defineGraph({ name: "inner", state: defineState({ log: channel.list(z.string()) }) })
    .nodes({ one: () => ({ log: ["one"] }), two: () => ({ log: ["two"] }) })
    .edges({ [START]: "one", one: "two", two: END });
  const call = subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }) });
  const outer = defineGraph({ name: "outer", state: defineState({ log: channel.list(z.string()) }) })
    .nodes({ a: call, b: call, quick: async () => ({ log: ["quick"] }) })
    .edges({ [START]: ["a", "b", "quick"], a: END, b: END, quick: END });
  const handle = run(outer, { store: memoryStore(), thread: "t" });
  const numbers: number[] = [];
  handle.on(({ seq }) => numbers.push(seq));
  await handle.result;
  expect(numbers).toEqual([...numbers].sort((before, after) => before - after));
  expect(new Set(numbers)).toEqual(
    new Set(Array.from({ length: numbers[numbers.length - 1] ?? 0 }, (_, index) => index + 1)),
  );
});

test("history lists the steps of a subgraph, and a fork from an inner step continues there [E22]", async () => {
  const log: string[] = [];
  const store = memoryStore();
  const graph = two(log);
  await run(graph, { store, thread: "t", input: { question: "bees" } }).result;
  const answers = { "research.research.scope": { wide: true } };
  await resume(graph, { store, thread: "t", answers }).result;
  const before = JSON.stringify(await listRows(store, "t"));
  const inner = researcher(log);
  const entries: { node: string | undefined; next: readonly string[]; checkpointId: number }[] = [];
  for await (const entry of getHistory(inner, { store, thread: "t", nesting: "research.research" }))
    entries.push(entry);
  expect(entries.map(({ node, next }) => [node, ...next])).toEqual([
    ["write", END],
    ["ask", "write"],
    ["plan", "ask"],
    [undefined, "plan"],
  ]);
  const at = (node: string) => entries.find((entry) => entry.node === node)?.checkpointId ?? 0;
  expect((await getState(inner, { store, thread: "t", at: at("plan") })).state.notes).toEqual(["plan bees"]);
  const newest = await getState(inner, { store, thread: "t", nesting: "research.research" });
  expect(newest.state.notes).toHaveLength(3);

  log.length = 0;
  const edited = await fork(inner, {
    store,
    thread: "t",
    at: at("ask"),
    name: "edited",
    update: { notes: ["by hand"] },
  });
  const later = await resume(graph, { store, thread: "t", branch: edited }).result;
  expect(later.state.notes).toEqual(["plan bees", "wide", "by hand", "write after 3", "closed", "closed 2"]);
  expect(log).toEqual(["write"]);

  // A fork from before the answer raises the interrupt again.
  const asked = await fork(inner, { store, thread: "t", at: at("plan"), name: "asked" });
  const waiting = await resume(graph, { store, thread: "t", branch: asked }).result;
  expect(waiting).toMatchObject({ status: "waiting", interrupts: [{ key: "research.research.scope" }] });
  const narrow = { "research.research.scope": { wide: false } };
  const done = await resume(graph, { store, thread: "t", branch: asked, answers: narrow }).result;
  expect(done.state.notes).toContain("narrow");
  const untouched = (await listRows(store, "t")).filter((row) => !row.includes("edited") && !row.includes("asked"));
  expect(JSON.stringify(untouched)).toBe(before);
});

async function listRows(store: Store, thread: string): Promise<readonly string[]> {
  const rows: string[] = [];
  for (let id = 1; ; id++) {
    const row = await store.checkpoint(thread, id);
    if (row === undefined) return rows;
    rows.push(JSON.stringify([row, await store.state(thread, id)]));
  }
}

test("a fork before a subgraph call reruns the call, raises its interrupt again and leaves the original unchanged [E22]", async () => {
  const log: string[] = [];
  const store = memoryStore();
  const graph = report(log);
  const first = await run(graph, { store, thread: "t", input: { question: "bees" } }).result;
  const at = (await getState(graph, { store, thread: "t" })).checkpointId;
  const branch = await fork(graph, { store, thread: "t", at, name: "ants", update: { question: "ants" } });
  log.length = 0;
  const forked = await resume(graph, { store, thread: "t", branch }).result;
  expect(forked.status).toBe("waiting");
  expect(log).toEqual(["plan", "ask"]);
  const answers = { "research.scope": { wide: true } };
  expect((await resume(graph, { store, thread: "t", branch, answers }).result).state.notes[0]).toBe("plan ants");
  expect((await resume(graph, { store, thread: "t", branch: first.branch, answers }).result).state.notes[0]).toBe(
    "plan bees",
  );
});

test("a drain stops at the end of an inner superstep, and is refused in a run without a store [E22]", async () => {
  const started = createDeferred();
  const goOn = createDeferred();
  const log: string[] = [];
  const inner = defineGraph({ name: "inner", state: Notes })
    .nodes({
      one: async () => {
        started.resolve();
        await goOn.promise;
        log.push("one");
      },
      two: () => void log.push("two"),
    })
    .edges({ [START]: "one", one: "two", two: END });
  const graph = defineGraph({ name: "outer", state: Notes })
    .nodes({ call: subgraph(inner, { input: ({ topic }) => ({ topic }), output: () => undefined }) })
    .edges({ [START]: "call", call: END });
  const store = memoryStore();
  const handle = run(graph, { store, thread: "t", input: { topic: "x" } });
  await started.promise;
  handle.drain("SIGTERM");
  goOn.resolve();
  const paused = await handle.result;
  expect(paused).toMatchObject({ status: "paused", cause: { code: "drained", place: { nesting: "call" } } });
  expect(log).toEqual(["one"]);
  expect((await store.thread("t"))?.status).toBe("paused");
  expect((await resume(graph, { store, thread: "t" }).result).status).toBe("done");
  expect(log).toEqual(["one", "two"]);
  const alone = run(graph, { input: { topic: "x" } });
  await getFailure(() => alone.drain(), "missing_store");
  await alone.result;
});

test("a subgraph does not inherit the defaults of the outer graph [E19]", async () => {
  let tries = 0;
  const inner = defineGraph({ name: "inner", state: Notes })
    .nodes({
      one: () => {
        tries += 1;
        throw new Error("no");
      },
    })
    .edges({ [START]: "one", one: END });
  const graph = defineGraph({ name: "outer", state: Notes, defaults: { onError: () => ({ notes: ["handled"] }) } })
    .nodes({ call: subgraph(inner, { input: ({ topic }) => ({ topic }), output: () => undefined }) })
    .edges({ [START]: "call", call: END });
  const { state } = await run(graph, { input: { topic: "x" } }).result;
  expect(state.notes).toEqual(["handled"]);
  expect(tries).toBe(1);
  const retried = defineGraph({ name: "outer", state: Notes, defaults: { retry: { attempts: 3, initialMs: 0 } } })
    .nodes({
      call: {
        run: subgraph(inner, { input: ({ topic }) => ({ topic }), output: () => undefined }),
        retry: { attempts: 1 },
      },
    })
    .edges({ [START]: "call", call: END });
  await getFailure(run(retried, { input: { topic: "x" } }).result, "node_failed");
  expect(tries).toBe(2);
});

test("a subgraph gets the context of the outer graph, parsed by its own schema, or a mapped context [E22]", async () => {
  const User = defineContext({ user: z.string() });
  const inner = defineGraph({ name: "inner", state: Notes, context: User })
    .nodes({ one: (_state, { context }) => ({ notes: [context.user] }) })
    .edges({ [START]: "one", one: END });
  const call = { input: () => ({ topic: "x" }), output: ({ notes }: { notes: readonly string[] }) => ({ notes }) };
  const same = defineGraph({ name: "same", state: Notes, context: User })
    .nodes({ call: subgraph(inner, call) })
    .edges({ [START]: "call", call: END });
  const made = defineGraph({ name: "made", state: Notes, context: defineContext({ id: z.number() }) })
    .nodes({ call: subgraph(inner, { ...call, context: ({ id }: { readonly id: number }) => ({ user: `u${id}` }) }) })
    .edges({ [START]: "call", call: END });
  defineGraph({ name: "lacks", state: Notes, context: defineContext({ id: z.number() }) })
    // @ts-expect-error its context has no user
    .nodes({ call: subgraph(inner, call) });
  expect((await run(same, { input: { topic: "" }, context: { user: "ada" } }).result).state.notes).toEqual(["ada"]);
  expect((await run(made, { input: { topic: "" }, context: { id: 7 } }).result).state.notes).toEqual(["u7"]);
});

test("subgraph input, output and answers are typed (types) [E22]", async () => {
  const types = (): void => {
    const graph = report();
    const store = memoryStore();
    resume(graph, { store, thread: "t", answers: { "research.scope": { wide: true } } });
    // @ts-expect-error the answer is a yes or no
    resume(graph, { store, thread: "t", answers: { "research.scope": { wide: "very" } } });
    const inner = researcher();
    defineGraph({ name: "w", state: Report })
      // @ts-expect-error the inner graph takes a topic
      .nodes({ research: subgraph(inner, { input: (state) => ({ theme: state.question }), output: () => undefined }) });
    defineGraph({ name: "w", state: Report }).nodes({
      // @ts-expect-error the state has no channel of this name
      research: subgraph(inner, { input: () => ({ topic: "" }), output: ({ notes }) => ({ findings: notes }) }),
    });
    defineGraph({ name: "w", state: Report }).nodes({
      // @ts-expect-error the inner state has no channel of this name
      research: subgraph(inner, { input: () => ({ topic: "" }), output: ({ findings }) => ({ notes: findings }) }),
    });
  };
  expect(types).toBeTypeOf("function");
});
