/** Tools whose calls run graphs: journal, interrupts, limits and resume after a crash. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  type AssistantMessage,
  approval,
  channel,
  checkGraph,
  commandTargets,
  decide,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  fork,
  type GraphDefinition,
  type GraphTypes,
  getHistory,
  getState,
  goto,
  graphTool,
  type InspectedActor,
  inject,
  type JsonObject,
  longTermStore,
  type MemoryStore,
  type Message,
  type Middleware,
  memoryStore,
  type RunEvent,
  resume,
  route,
  run,
  START,
  StatewrightError,
  type Store,
  streamEvents,
  subgraph,
  type Tool,
  ToolError,
  type ToolMessage,
  toolNode,
} from "../../../src/index.ts";
import { copyThread, pruneThread, toMermaid } from "../../../src/inspect.ts";
import type { Commit } from "../../../src/store.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { getFailure, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Effects of the inner graph over all processes. */
interface Log {
  readonly done: string[];
}

const Notes = defineState({ topic: z.string(), notes: channel.list(z.string()) });

/** Inner graph that reads and writes; its second step hangs while `stuck` has the topic. */
function researcher(log: Log, stuck: Set<string> = new Set()) {
  return defineGraph({ name: "researcher", state: Notes, interrupts: { scope: z.enum(["wide", "narrow"]) } })
    .nodes({
      read: async ({ topic }, { step }) => {
        const note = await step("read", () => {
          log.done.push(`read ${topic}`);
          return `read ${topic}`;
        });
        return { notes: [note] };
      },
      write: async ({ topic }, { step }) => {
        const note = await step("outline", () => {
          log.done.push(`outline ${topic}`);
          return `outline ${topic}`;
        });
        if (stuck.has(topic)) await new Promise(() => undefined);
        log.done.push(`write ${topic}`);
        return { notes: [note, `write ${topic}`] };
      },
    })
    .edges({ [START]: "read", read: "write", write: END });
}

const topic = z.object({ topic: z.string() });

function research(log: Log, stuck?: Set<string>) {
  return graphTool(researcher(log, stuck), {
    name: "research",
    description: "Look something up.",
    input: topic,
    toInput: (args) => ({ topic: args.topic }),
    toResult: ({ notes }) => notes.join(", "),
  });
}

/** Creates an assistant message with tool calls, each with a separate id. */
function createCallMessage(...calls: readonly (readonly [name: string, args: JsonObject])[]): {
  readonly messages: [AssistantMessage];
} {
  const content = calls.map(([name, args], index) => ({
    type: "call" as const,
    id: `c${index}`,
    name,
    args: { ...args },
  }));
  return { messages: [{ role: "assistant", id: "a", finish: "calls", content }] };
}

function createDesk(
  tools: readonly Tool<{ readonly messages: readonly Message[] }>[],
  middleware: readonly Middleware[] = [],
) {
  return defineGraph({
    name: "desk",
    state: defineState({ messages: channel.messages() }),
    middleware,
    interrupts: { approve: approval },
  })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
}

function listAnswers(state: { readonly messages: readonly { readonly role: string }[] }): readonly string[] {
  return state.messages.flatMap((message) => {
    if (message.role !== "tool") return [];
    const { content, isError } = message as ToolMessage;
    const text = content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
    return [isError ? `error: ${text}` : text];
  });
}

test("a graph tool passes the call arguments to its graph, and the model reads the mapped output", async () => {
  const log: Log = { done: [] };
  const { state } = await run(createDesk([research(log)]), {
    input: createCallMessage(["research", { topic: "bees" }]),
  }).result;
  expect(listAnswers(state)).toEqual(["read bees, outline bees, write bees"]);
});

test("two graph tool calls in one message run in parallel with separate state, events and namespaces", async () => {
  const log: Log = { done: [] };
  const store = memoryStore();
  const graph = createDesk([research(log)]);
  const handle = run(graph, {
    store,
    world: createVirtualWorld(),
    thread: "t",
    input: createCallMessage(["research", { topic: "ants" }], ["research", { topic: "bees" }]),
  });
  const events: RunEvent[] = [];
  handle.on((event) => {
    if (event.type === "step.committed") events.push(event);
  });
  const { state } = await handle.result;
  expect(listAnswers(state)).toEqual(["read ants, outline ants, write ants", "read bees, outline bees, write bees"]);
  // The calls run in parallel.
  expect(log.done.slice(0, 2)).toEqual(["read ants", "read bees"]);
  const inner = events.filter(({ within }) => within !== undefined);
  expect(new Set(inner.map(({ within, withinId }) => `${within} ${withinId}`))).toEqual(
    new Set(["research 0:0:0", "research 0:0:1"]),
  );
  const stored: RunEvent[] = [];
  for await (const event of streamEvents({ store, thread: "t" }))
    if (event.type === "step.committed") stored.push(event);
  expect(stored).toEqual(events);
  const seen: string[] = [];
  for await (const { branch, nodes, step } of getHistory(researcher(log), { store, thread: "t", nesting: "research" }))
    seen.push(`${branch} ${step} ${nodes.join()}`);
  expect(seen).toEqual([
    "main/0:0:1 2 write",
    "main/0:0:1 1 read",
    "main/0:0:1 0 ",
    "main/0:0:0 2 write",
    "main/0:0:0 1 read",
    "main/0:0:0 0 ",
  ]);
  const newest = await getState(researcher(log), { store, thread: "t", nesting: "research" });
  expect(newest.state.topic).toBe("bees");
});

test("an inspector sees the machine of each graph tool call, and checkGraph walks the graphs of tools", async () => {
  const graph = createDesk([research({ done: [] })]);
  const started: string[] = [];
  await run(graph, {
    input: createCallMessage(["research", { topic: "ants" }], ["research", { topic: "bees" }]),
    inspect: (event) => {
      if (event.type === "@xstate.actor") started.push((event.actorRef as InspectedActor).id);
    },
  }).result;
  expect(started.filter((id) => id.startsWith("research"))).toEqual(["research 0:0:0", "research 0:0:1"]);
  const looped = defineGraph({ name: "looped", state: Notes })
    .nodes({ round: ({ notes }) => goto(notes.length > 3 ? END : "round") })
    .edges({ [START]: "round", round: commandTargets("round", END) });
  const asks = defineGraph({ name: "asks", state: Notes, interrupts: { never: z.never() } })
    .nodes({
      ask: { interrupts: ["never"], run: async (_state, { interrupt }) => ({ notes: [await interrupt("never")] }) },
    })
    .edges({ [START]: "ask", ask: END });
  const usual = { description: "x", input: topic, toInput: (args: { topic: string }) => args, toResult: () => "" };
  const tools = [graphTool(looped, { ...usual, name: "looped" }), graphTool(asks, { ...usual, name: "asks" })];
  const report = checkGraph(createDesk(tools));
  expect(report.violations.map(({ message }) => message)).toEqual([expect.stringContaining('"asks.never"')]);
});

/** Tool whose graph raises an interrupt and returns the answer. */
function askerTool() {
  const asker = defineGraph({ name: "asker", state: Notes, interrupts: { scope: z.string() } })
    .nodes({ ask: async (_state, { interrupt }) => ({ notes: [await interrupt("scope")] }) })
    .edges({ [START]: "ask", ask: END });
  return graphTool(asker, {
    name: "asker",
    description: "Asks.",
    input: z.object({}),
    toInput: () => ({ topic: "x" }),
    toResult: ({ notes }) => notes.join(),
  });
}

test("an aroundTool hook that catches every failure does not prevent the graph of a tool from waiting", async () => {
  const tool = askerTool();
  let around = 0;
  const takesAll = defineMiddleware({
    name: "takes all",
    aroundTool: async ({ call }, next) => {
      around += 1;
      try {
        return await next(call);
      } catch {
        return { callId: call.id, name: call.name, content: [], isError: true, attempts: 1, elapsedMs: 0 };
      }
    },
  });
  const store = memoryStore();
  const graph = createDesk([tool], [takesAll]);
  const waits = await run(graph, { store, thread: "t", input: createCallMessage(["asker", {}]) }).result;
  expect(waits.status).toBe("waiting");
  const { state } = await resume(graph, { store, thread: "t", answers: { "0:0:0/0:0:scope": "wide" } }).result;
  expect(listAnswers(state)).toEqual(["wide"]);
  // Hooks around the call run again with it.
  expect(around).toBe(2);
});

describe("crash during two graph tool calls", () => {
  async function crashed(store: MemoryStore, stuck: Set<string>) {
    const log: Log = { done: [] };
    const world = createVirtualWorld();
    const graph = createDesk([research(log, stuck)]);
    const input = createCallMessage(["research", { topic: "ants" }], ["research", { topic: "bees" }]);
    ignoreResult(run(graph, { store, world, thread: "t", input }).result);
    await world.waitUntilIdle();
    await world.waitUntilIdle();
    store.crash();
    return { log, graph, world };
  }

  test("recorded steps of graph tool calls are not repeated after a crash, also in the interrupted superstep", async () => {
    const store = memoryStore();
    const stuck = new Set(["bees"]);
    const { log, graph, world } = await crashed(store, stuck);
    expect(log.done).toEqual(["read ants", "read bees", "outline ants", "outline bees", "write ants"]);
    stuck.clear();
    const handle = resume(graph, { store: store.peer(), world, thread: "t" });
    const events: string[] = [];
    handle.on((event) => {
      if (event.type.startsWith("effect.")) events.push(`${event.type} ${event.within ?? ""}`);
    });
    const { state } = await handle.result;
    expect(log.done.slice(5)).toEqual(["write bees"]);
    expect(listAnswers(state)).toEqual(["read ants, outline ants, write ants", "read bees, outline bees, write bees"]);
    // The first call returns its recorded result, the second continues after its outline: no step is repeated.
    expect(events.toSorted()).toEqual(["effect.reused ", "effect.reused research"]);
  });

  test("a graph tool call whose graph had ended before its answer was saved is answered from the final state of that graph", async () => {
    const store = memoryStore();
    const log: Log = { done: [] };
    const world = createVirtualWorld();
    let hangs = true;
    const slow = defineMiddleware({
      name: "slow",
      afterTool: async () => {
        if (hangs) await new Promise(() => undefined);
        return undefined;
      },
    });
    const graph = createDesk([research(log)], [slow]);
    ignoreResult(
      run(graph, { store, world, thread: "t", input: createCallMessage(["research", { topic: "ants" }]) }).result,
    );
    await world.waitUntilIdle();
    await world.waitUntilIdle();
    expect(log.done).toEqual(["read ants", "outline ants", "write ants"]);
    store.crash();
    hangs = false;
    const { state } = await resume(graph, { store: store.peer(), world, thread: "t" }).result;
    expect(log.done).toHaveLength(3);
    expect(listAnswers(state)).toEqual(["read ants, outline ants, write ants"]);
  });
});

test("a full store at any commit of parallel graph tool calls pauses the run, gives no call an answer, and a resume completes it", async () => {
  const log: Log = { done: [] };
  const graph = createDesk([research(log)]);
  const input = createCallMessage(["research", { topic: "a" }], ["research", { topic: "b" }]);
  const expected = listAnswers((await run(graph, { input }).result).state);
  let stopped = 0;
  for (let nth = 2; nth < 30; nth++) {
    const whole = memoryStore();
    let commits = 0;
    let isFull = true;
    const store: Store = Object.assign(Object.create(whole) as MemoryStore, {
      commit: (commit: Commit, onCommitted: Parameters<Store["commit"]>[1]) => {
        commits += 1;
        if (commits < nth || !isFull || commit.release === true) whole.commit(commit, onCommitted);
        else onCommitted(new StatewrightError("store_full", { what: "the disk is full", next: "Make room" }));
      },
    });
    const end = await run(graph, { store, thread: "t", input }).result.catch((error: unknown) => error);
    isFull = false;
    const status = (end as { readonly status?: string }).status;
    if (status !== "done") stopped += 1;
    const { state } =
      status === "done"
        ? (end as { state: Parameters<typeof listAnswers>[0] })
        : await resume(graph, { store, thread: "t" }).result;
    expect(listAnswers(state), `commit ${nth}`).toEqual(expected);
  }
  expect(stopped).toBeGreaterThan(5);
});

/** Recorded or folded outcomes of the steps of the inner calls. */
async function listRecorded(store: Store): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  if ((await store.thread("t")) === undefined) return found;
  for (const office of ["main/0:0:0", "main/0:0:1"])
    for (const line of [`${office}/0:0:0`, `${office}/0:0:1`]) {
      for (const { kind, outcome } of await store.effects("t", line))
        if (kind === "step" && outcome !== undefined) found.add(JSON.parse(outcome) as string);
      const head = await store.head("t", line);
      for (const { channel: oneChannel, deltas } of head === undefined ? [] : await store.state("t", head.id))
        if (oneChannel === "notes")
          for (const { text } of deltas) for (const note of JSON.parse(text) as string[]) found.add(note);
    }
  return found;
}

test("a crash at any commit of nested parallel graph tool calls ends like an uninterrupted run and repeats no recorded effect", async () => {
  const log: Log = { done: [] };
  const middle = defineGraph({
    name: "middle",
    state: defineState({ messages: channel.messages(), said: channel.list(z.string()) }),
  })
    .nodes({
      tools: toolNode({ tools: [research(log)] }),
      last: async (_state, { step }) => ({
        said: [
          await step("last", () => {
            log.done.push("last");
            return "last";
          }),
        ],
      }),
    })
    .edges({ [START]: "tools", tools: "last", last: END });
  const office = graphTool(middle, {
    name: "office",
    description: "Research two topics.",
    input: z.object({ one: z.string(), two: z.string() }),
    toInput: ({ one, two }) => createCallMessage(["research", { topic: one }], ["research", { topic: two }]),
    toResult: (state) => [...listAnswers(state), ...state.said].join(" / "),
  });
  const graph = createDesk([office]);
  const input = createCallMessage(["office", { one: "a", two: "b" }], ["office", { one: "c", two: "d" }]);
  const whole = await run(graph, { input }).result;
  const expected = listAnswers(whole.state);
  expect(expected).toHaveLength(2);
  const all = log.done.toSorted();
  let crashes = 0;
  for (let nth = 1; nth < 60; nth++) {
    for (const after of [false, true]) {
      log.done.length = 0;
      const whole = memoryStore();
      const dying = createCrashingStore(whole, nth, after ? "after" : "before");
      const first = run(graph, { store: dying.store, thread: "t", input });
      let ended = false;
      first.result.then(
        () => {
          ended = true;
        },
        () => undefined,
      );
      await new Promise((resolve) => setImmediate(resolve));
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (ended) continue;
      crashes += 1;
      const peer = whole.peer();
      const recorded = await listRecorded(peer);
      const before = log.done.length;
      const isThere = (await peer.thread("t")) !== undefined && (await peer.head("t")) !== undefined;
      const handle = isThere
        ? resume(graph, { store: peer, thread: "t" })
        : run(graph, { store: peer, thread: "t", input });
      expect(listAnswers((await handle.result).state), `commit ${nth} ${after ? "after" : "before"}`).toEqual(expected);
      // A completed but unrecorded step runs again; a recorded step does not.
      expect(new Set(log.done)).toEqual(new Set(all));
      expect(log.done.slice(before).filter((done) => recorded.has(done))).toEqual([]);
    }
  }
  expect(crashes).toBeGreaterThan(20);
});

describe("interrupts inside a graph tool call", () => {
  const Asked = defineState({ topic: z.string(), notes: channel.list(z.string()) });
  function asker(done: string[]) {
    return defineGraph({ name: "asker", state: Asked, interrupts: { scope: z.enum(["wide", "narrow"]) } })
      .nodes({
        plan: ({ topic }) => {
          done.push(`plan ${topic}`);
          return {};
        },
        ask: async ({ topic }, { interrupt }) => ({ notes: [`${topic}: ${await interrupt("scope")}`] }),
      })
      .edges({ [START]: "plan", plan: "ask", ask: END });
  }
  function tool(done: string[], more: { readonly timeoutMs?: number } = {}) {
    return graphTool(asker(done), {
      name: "research",
      description: "Look something up.",
      input: topic,
      toInput: (args) => args,
      toResult: ({ notes }) => notes.join(),
      ...more,
    });
  }

  test("an interrupt inside a graph tool call opens at the outermost run under the tool name, and the call continues after its answer", async () => {
    const done: string[] = [];
    const store = memoryStore();
    const graph = createDesk([tool(done)]);
    const first = await run(graph, { store, thread: "t", input: createCallMessage(["research", { topic: "bees" }]) })
      .result;
    expect(first).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "research.scope", node: "research.ask", id: "0:0:0/1:0:scope" }],
    });
    await getFailure(
      resume(graph, { store, thread: "t", answers: { "0:0:0/1:0:scope": "deep" } }).result,
      "invalid_answer",
    );
    const answers = { "0:0:0/1:0:scope": "wide" };
    const { status, state } = await resume(graph, { store, thread: "t", answers }).result;
    expect(status).toBe("done");
    expect(listAnswers(state)).toEqual(["bees: wide"]);
    expect(done).toEqual(["plan bees"]);
  });

  test("interrupts of several graph tool calls are open together, and a completed sibling call does not rerun", async () => {
    const done: string[] = [];
    const log: Log = { done: [] };
    const store = memoryStore();
    const look = graphTool(researcher(log), {
      name: "look",
      description: "Look.",
      input: topic,
      toInput: (args) => args,
      toResult: ({ notes }) => notes.length,
    });
    const graph = createDesk([tool(done), look]);
    const input = createCallMessage(
      ["research", { topic: "ants" }],
      ["look", { topic: "x" }],
      ["research", { topic: "bees" }],
    );
    const first = await run(graph, { store, thread: "t", input }).result;
    expect(first.status === "waiting" ? first.interrupts.map(({ id }) => id) : []).toEqual([
      "0:0:0/1:0:scope",
      "0:0:2/1:0:scope",
    ]);
    const peer = store.peer();
    store.crash();
    const one = await resume(graph, { store: peer, thread: "t", answers: { "0:0:2/1:0:scope": "wide" } }).result;
    expect(one.status === "waiting" ? one.interrupts.map(({ id }) => id) : []).toEqual(["0:0:0/1:0:scope"]);
    const two = await resume(graph, { store: peer, thread: "t", answers: { "0:0:0/1:0:scope": "narrow" } }).result;
    expect(listAnswers(two.state)).toEqual(["ants: narrow", "[json]", "bees: wide"]);
    expect(done).toEqual(["plan ants", "plan bees"]);
    expect(log.done).toHaveLength(3);
  });

  test("a tool call inside a graph tool is approved under the name of the outer tool and runs once", async () => {
    const paid: number[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pay.",
      input: z.object({ cents: z.int() }),
      effect: "once",
      run: ({ cents }) => {
        paid.push(cents);
        return "paid";
      },
    });
    const first = defineMiddleware({
      name: "first",
      interrupts: { approve: approval },
      beforeTool: ({ call }) => decide.interrupt(call, "it pays"),
    });
    const clerk = defineGraph({
      name: "clerk",
      state: defineState({ messages: channel.messages() }),
      interrupts: { approve: approval },
    })
      .nodes({ tools: toolNode({ tools: [pay], middleware: [first] }) })
      .edges({ [START]: "tools", tools: END });
    const ask = graphTool(clerk, {
      name: "clerk",
      description: "Let the clerk pay.",
      input: z.object({ cents: z.int() }),
      toInput: (args) => createCallMessage(["pay", args]),
      toResult: (state) => listAnswers(state).join(),
    });
    const store = memoryStore();
    const graph = createDesk([ask]);
    const waits = await run(graph, { store, thread: "t", input: createCallMessage(["clerk", { cents: 7 }]) }).result;
    expect(waits).toMatchObject({
      interrupts: [{ key: "clerk.approve", payload: { tool: "pay", args: { cents: 7 } } }],
    });
    const peer = store.peer();
    store.crash();
    const { state } = await resume(graph, { store: peer, thread: "t", answers: { "clerk.approve": true } }).result;
    expect(listAnswers(state)).toEqual(["paid"]);
    expect(paid).toEqual([7]);
  });

  test("an interrupt inside a graph tool without a store fails with missing_store", async () => {
    const failure = await getFailure(
      run(createDesk([tool([])]), { input: createCallMessage(["research", { topic: "bees" }]) }).result,
      "missing_store",
    );
    expect(failure.place).toMatchObject({ nesting: "research", node: "ask" });
  });

  test("the timeout of a graph tool counts while its graph is active and not while it waits for an answer", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    const graph = createDesk([tool([], { timeoutMs: 1_000 })]);
    const at = { store, world, thread: "t" };
    await run(graph, { ...at, input: createCallMessage(["research", { topic: "bees" }]) }).result;
    await world.advance(5_000);
    const { state } = await resume(graph, { ...at, answers: { "0:0:0/1:0:scope": "wide" } }).result;
    expect(listAnswers(state)).toEqual(["bees: wide"]);
    expect(world.timers).toBe(0);
  });
});

describe("graph tool call without an answer", () => {
  const Loop = defineState({ count: z.int().default(0) });
  const endless = defineGraph({ name: "endless", state: Loop })
    .nodes({ turn: ({ count }) => goto("turn", { count: count + 1 }) })
    .edges({ [START]: "turn", turn: commandTargets("turn", END) });

  test("a graph tool call over its step limit is answered with an error that says so and includes the partial answer [T55]", async () => {
    const tool = graphTool(endless, {
      name: "endless",
      description: "Goes on.",
      input: z.object({}),
      toInput: () => ({}),
      toResult: () => "never",
      found: ({ count }) => `${count} rounds`,
    });
    const { state } = await run(createDesk([tool]), { input: createCallMessage(["endless", {}]), maxSteps: 4 }).result;
    expect(listAnswers(state)).toEqual([
      "error: endless was stopped before it had an answer: it took 4 steps without finishing. Findings so far: 4 rounds",
    ]);
  });

  test("a failed graph tool call says only that it failed, and the log has the details", async () => {
    const world = createVirtualWorld();
    const broken = defineGraph({ name: "broken", state: Loop })
      .nodes({
        turn: () => {
          throw new Error("the password is 1234");
        },
      })
      .edges({ [START]: "turn", turn: END });
    const tool = graphTool(broken, {
      name: "broken",
      description: "Breaks.",
      input: z.object({}),
      toInput: () => ({}),
      toResult: () => "never",
    });
    const { state } = await run(createDesk([tool]), { world, input: createCallMessage(["broken", {}]) }).result;
    expect(listAnswers(state)).toEqual(["error: broken failed before it had an answer."]);
    expect(JSON.stringify(state)).not.toContain("1234");
    expect(world.lines.map(({ message }) => message)).toContain('the graph of the tool "broken" failed');
  });

  test("a graph tool whose output function throws a tool error answers with that error", async () => {
    const tool = graphTool(researcher({ done: [] }), {
      name: "research",
      description: "Look.",
      input: topic,
      toInput: (args) => args,
      toResult: () => {
        throw new ToolError("limit", "Stopped after two notes.");
      },
    });
    const { state } = await run(createDesk([tool]), { input: createCallMessage(["research", { topic: "x" }]) }).result;
    expect(listAnswers(state)).toEqual(["error: Stopped after two notes."]);
  });

  test("a tool error of a node inside a graph tool is the answer, after the retries of that node", async () => {
    const world = createVirtualWorld();
    const done: string[] = [];
    const busy = defineGraph({ name: "busy", state: Notes })
      .nodes({
        first: () => {
          done.push("first");
          return { notes: ["one"] };
        },
        second: () => {
          done.push("second");
          throw ToolError.unavailable("The library is closed.");
        },
      })
      .edges({ [START]: "first", first: "second", second: END });
    const tool = graphTool(busy, {
      name: "busy",
      description: "Busy.",
      input: z.object({}),
      retry: { attempts: 2, initialMs: 10 },
      toInput: () => ({ topic: "x" }),
      toResult: () => "never",
    });
    const handle = run(createDesk([tool]), { world, input: createCallMessage(["busy", {}]) });
    await world.advance(1_000);
    expect(listAnswers((await handle.result).state)).toEqual(["error: The library is closed."]);
    expect(done).toEqual(["first", "second", "second"]);
  });

  test("a graph tool call over its timeout is stopped before its answer, which includes the partial answer", async () => {
    const world = createVirtualWorld();
    let stopped = false;
    const slow = defineGraph({ name: "slow", state: Notes })
      .nodes({
        first: () => ({ notes: ["one"] }),
        second: async (_state, { signal }) => {
          await new Promise((_, reject) => {
            signal.addEventListener("abort", () => {
              stopped = true;
              reject(signal.reason as Error);
            });
          });
          return {};
        },
      })
      .edges({ [START]: "first", first: "second", second: END });
    const tool = graphTool(slow, {
      name: "slow",
      description: "Slow.",
      input: z.object({}),
      timeoutMs: 50,
      toInput: () => ({ topic: "x" }),
      toResult: () => "never",
      found: ({ notes }) => notes.join(),
    });
    const handle = run(createDesk([tool]), { world, input: createCallMessage(["slow", {}]) });
    await world.advance(50);
    const { state } = await handle.result;
    expect(listAnswers(state)).toEqual([
      "error: slow was stopped before it had an answer: Timed out after 50 ms. Findings so far: one",
    ]);
    expect(stopped).toBe(true);
    expect(world.timers).toBe(0);
  });

  test("a retry of a graph tool call continues where the last attempt stopped", async () => {
    const world = createVirtualWorld();
    const done: string[] = [];
    const slow = defineGraph({ name: "slow", state: Notes })
      .nodes({
        first: () => {
          done.push("first");
          return { notes: ["one"] };
        },
        second: async () => {
          done.push("second");
          if (done.length === 2) await new Promise(() => undefined);
          return { notes: ["two"] };
        },
      })
      .edges({ [START]: "first", first: "second", second: END });
    const tool = graphTool(slow, {
      name: "slow",
      description: "Slow.",
      input: z.object({}),
      timeoutMs: 50,
      retry: { attempts: 2, initialMs: 10 },
      toInput: () => ({ topic: "x" }),
      toResult: ({ notes }) => notes.join(),
    });
    for (const store of [undefined, memoryStore()]) {
      done.length = 0;
      const handle = run(createDesk([tool]), {
        world,
        input: createCallMessage(["slow", {}]),
        ...(store && { store, thread: "t" }),
      });
      await world.advance(1_000);
      expect(listAnswers((await handle.result).state)).toEqual(["one,two"]);
      expect(done).toEqual(["first", "second", "second"]);
    }
  });

  test("a once step in doubt inside a graph tool call is asked, and its answer lets the call finish [FX6]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    let hangs = true;
    const risky = defineGraph({ name: "risky", state: Loop })
      .nodes({
        pay: async (_state, { step }) => {
          await step("pay", () => (hangs ? new Promise<string>(() => undefined) : "paid"), { effect: "once" });
          return {};
        },
      })
      .edges({ [START]: "pay", pay: END });
    const tool = graphTool(risky, {
      name: "risky",
      description: "Pays.",
      input: z.object({}),
      toInput: () => ({}),
      toResult: () => "paid",
    });
    const graph = createDesk([tool]);
    ignoreResult(run(graph, { store, world, thread: "t", input: createCallMessage(["risky", {}]) }).result);
    await world.waitUntilIdle();
    store.crash();
    hangs = false;
    const next = { store: store.peer(), world, thread: "t" };
    expect(await resume(graph, next).result).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "risky.in_doubt", node: "risky.pay", payload: { step: "pay" } }],
    });
    const answers = { "risky.in_doubt": { happened: true, value: "paid" } };
    expect(listAnswers((await resume(graph, { ...next, answers }).result).state)).toEqual(["paid"]);
  });

  test("an abort by middleware inside a graph tool ends that call, and an abort by middleware of the outer graph ends the run", async () => {
    const touch = defineTool({ name: "touch", description: "Touch.", input: z.object({}), run: () => "touched" });
    const stop = (name: string) =>
      defineMiddleware({
        name,
        beforeTool: ({ call }) => (call.name === "touch" ? { action: "abort", reason: "that is enough" } : undefined),
      });
    const inner = (middleware: readonly Middleware[]) =>
      defineGraph({ name: "inner", state: defineState({ messages: channel.messages() }), middleware })
        .nodes({ tools: toolNode({ tools: [touch] }), after: () => ({}) })
        .edges({ [START]: "tools", tools: "after", after: END });
    const tool = (middleware: readonly Middleware[]) =>
      graphTool(inner(middleware), {
        name: "inner",
        description: "Inner.",
        input: z.object({}),
        toInput: () => createCallMessage(["touch", {}]),
        toResult: () => "answered",
        found: (state) => listAnswers(state).join(),
      });
    const own = await run(createDesk([tool([stop("own")])]), { input: createCallMessage(["inner", {}]) }).result;
    expect(own.status).toBe("done");
    expect(listAnswers(own.state)[0]).toMatch(/^error: inner was stopped before it had an answer: that is enough\./);
    const whole = defineGraph({
      name: "whole",
      state: defineState({ messages: channel.messages() }),
      middleware: [stop("all")],
    })
      .nodes({ tools: toolNode({ tools: [tool([])] }), after: () => ({}) })
      .edges({ [START]: "tools", tools: "after", after: END });
    const all = await run(whole, { input: createCallMessage(["inner", {}]) }).result;
    expect(all).toMatchObject({ status: "cancelled", reason: "that is enough" });
  });
});

describe("nested graph tool calls", () => {
  const Depth = defineState({ messages: channel.messages(), depth: z.int().default(0) });
  interface DepthTypes extends GraphTypes {
    readonly input: { readonly depth?: number };
    readonly output: { readonly depth: number; readonly messages: readonly Message[] };
  }

  /** Graph that calls itself as a tool, down to depth `most`. */
  function nested(most: number, maxDepth?: number) {
    const deeper = graphTool((): GraphDefinition & { readonly types?: DepthTypes } => graph as never, {
      name: "deeper",
      description: "Go deeper.",
      input: z.object({ depth: z.int() }),
      toInput: (args) => args,
      toResult: (state) => `${state.depth}(${listAnswers(state).join()})`,
      ...(maxDepth === undefined ? {} : { maxDepth }),
    });
    const graph = defineGraph({ name: "nested", state: Depth })
      .nodes({
        think: ({ depth }) => (depth < most ? createCallMessage(["deeper", { depth: depth + 1 }]) : {}),
        tools: toolNode({ tools: [deeper] }),
      })
      .edges({ [START]: "think", think: "tools", tools: END });
    return graph;
  }

  test("a graph may call itself through a tool, and each call has its own state", async () => {
    const store = memoryStore();
    const { state } = await run(nested(3), { store, thread: "t", input: {} }).result;
    expect(listAnswers(state)).toEqual(["1(2(3()))"]);
  });

  test("graph tool calls nested deeper than 5 are refused with an error that shows the path", async () => {
    const { state } = await run(nested(100), { input: {} }).result;
    expect(listAnswers(state)[0]).toBe(
      "1(2(3(4(5(error: Not run: nested calls are limited to a depth of 5, and this call would exceed it (deeper → deeper → deeper → deeper → deeper → deeper). Continue without this call.)))))",
    );
  });

  test("a graph tool may set a lower maximum depth", async () => {
    const { state } = await run(nested(100, 1), { input: {} }).result;
    expect(listAnswers(state)[0]).toMatch(/^1\(error: Not run: nested calls are limited to a depth of 1/);
  });

  test("a graph tool with a lazily given recursive graph can be drawn and has a shape", () => {
    const self = graphTool((): ReturnType<typeof createDesk> => graph, {
      name: "self",
      description: "Again.",
      input: z.object({}),
      toInput: () => ({}),
      toResult: () => "done",
    });
    const graph: ReturnType<typeof createDesk> = createDesk([self]);
    expect(toMermaid(graph)).toBe(
      [
        "flowchart TD",
        "  start((start))",
        "  subgraph tools [tools]",
        "    tools_self[self]",
        "  end",
        "  done((done))",
        "  start --> tools",
        "  tools --> done",
        "",
      ].join("\n"),
    );
  });
});

test("a cancel reaches graph tool calls, answers the transcript and leaves no work behind", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const log: Log = { done: [] };
  const graph = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools: [research(log, new Set(["bees"]))] }), after: () => ({}) })
    .edges({ [START]: "tools", tools: "after", after: END });
  const handle = run(graph, {
    store,
    world,
    thread: "t",
    input: createCallMessage(["research", { topic: "ants" }], ["research", { topic: "bees" }]),
  });
  await world.waitUntilIdle();
  await world.waitUntilIdle();
  handle.cancel("enough");
  const end = await handle.result;
  expect(end).toMatchObject({ status: "cancelled", reason: "enough" });
  expect(listAnswers(end.state)).toEqual(["read ants, outline ants, write ants", "error: Cancelled"]);
  expect(world.timers).toBe(0);
});

test("a drain stops each graph tool call at its own boundary, and a resume continues from there", async () => {
  const store = memoryStore();
  const log: Log = { done: [] };
  const graph = createDesk([research(log)]);
  const handle = run(graph, { store, thread: "t", input: createCallMessage(["research", { topic: "ants" }]) });
  handle.on((event) => {
    if (event.type === "step.committed" && event.within === "research" && event.nodes.includes("read")) handle.drain();
  });
  expect(await handle.result).toMatchObject({
    status: "paused",
    cause: { code: "drained", place: { nesting: "research" } },
  });
  expect(log.done).toEqual(["read ants"]);
  const { status, state } = await resume(graph, { store, thread: "t" }).result;
  expect(status).toBe("done");
  expect(listAnswers(state)).toEqual(["read ants, outline ants, write ants"]);
  expect(log.done).toEqual(["read ants", "outline ants", "write ants"]);
});

test("context is mapped into a graph tool, and shared secrets are kept out of saved data [T54]", async () => {
  const Outer = defineContext({ user: z.string(), key: z.string() });
  const Inner = defineContext({ name: z.string() });
  const peek = defineTool({
    name: "peek",
    description: "Peek.",
    input: z.object({}),
    inject: { token: inject.secret("token") },
    run: async (_args, { injected }) => `seen ${await injected.token.reveal()}`,
  });
  const inner = defineGraph({
    name: "inner",
    state: defineState({ messages: channel.messages(), who: z.string().default("") }),
    context: Inner,
  })
    .nodes({
      who: (_state, { context }) => ({ who: context.name }),
      tools: toolNode({ tools: [peek] }),
    })
    .edges({ [START]: "who", who: "tools", tools: END });
  const tool = graphTool(inner, {
    name: "inner",
    description: "Inner.",
    input: z.object({}),
    context: (outer: { readonly user: string; readonly key: string }) => ({ name: outer.user }),
    toInput: () => createCallMessage(["peek", {}]),
    toResult: (state) => `${state.who}: ${listAnswers(state).join()}`,
  });
  const graph = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }), context: Outer })
    .nodes({ tools: toolNode({ tools: [tool] }) })
    .edges({ [START]: "tools", tools: END });
  const { state } = await run(graph, {
    input: createCallMessage(["inner", {}]),
    context: { user: "ann", key: "k" },
    secrets: { get: () => "s3cret-token" },
  }).result;
  expect(listAnswers(state)[0]).toMatch(/^ann: seen \[/);
  expect(JSON.stringify(state)).not.toContain("s3cret-token");
});

describe("injections of a graph tool", () => {
  const Caller = defineContext({ user: z.string() });
  const Desk = defineState({ messages: channel.messages(), cart: z.array(z.string()).default([]) });
  const look = graphTool(researcher({ done: [] }), {
    name: "look",
    description: "Look something up.",
    input: z.object({ about: z.string() }),
    inject: {
      user: inject.context(Caller, ({ user }) => user),
      cart: inject.state(Desk, ({ cart }) => cart),
      token: inject.secret("token"),
    },
    toInput: ({ about }, { injected, state, context }) => ({
      topic: `${about} for ${injected.user}: ${state.cart.length} of ${injected.cart.join()}, ${context.user}`,
    }),
    toResult: ({ topic: of }, { injected, state }) => `${of}, ${injected.user}, ${state.cart.length}`,
  });
  const desk = defineGraph({ name: "desk", state: Desk, context: Caller })
    .nodes({ tools: toolNode({ tools: [look] }) })
    .edges({ [START]: "tools", tools: END });

  test("the mappings of a graph tool get the injected values and the state that they are taken from [FX36]", async () => {
    const { state } = await run(desk, {
      input: { ...createCallMessage(["look", { about: "tea" }]), cart: ["pot", "cup"] },
      context: { user: "ann" },
      secrets: { get: () => "s3cret" },
    }).result;
    expect(listAnswers(state)).toEqual(["tea for ann: 2 of pot,cup, ann, ann, 2"]);
  });

  test("injections of a graph tool are resolved before its graph starts: a missing secret fails the run [FX36]", async () => {
    const input = { ...createCallMessage(["look", { about: "tea" }]) };
    await getFailure(run(desk, { input, context: { user: "ann" } }).result, "missing_secret");
  });

  test("a graph tool refuses an injection that is none, and names that are arguments too [FX36]", () => {
    const parts = { name: "x", description: "X.", toInput: () => ({ topic: "" }), toResult: () => "" } as const;
    const create = (options: object) => () =>
      graphTool(researcher({ done: [] }), { ...parts, input: topic, ...options } as never);
    expect(create({ inject: { user: "ann" } })).toThrow('tool "x": `injection "user"` must be the result of from(…)');
    expect(create({ inject: { topic: inject.secret("topic") } })).toThrow("both as an argument and as an injection");
  });
});

test("middleware of the outer graph wraps the tools inside a graph tool call [T54]", async () => {
  const seen: string[] = [];
  const watch = defineMiddleware({
    name: "watch",
    beforeTool: ({ call }) => {
      seen.push(call.name);
      return undefined;
    },
  });
  const touch = defineTool({ name: "touch", description: "Touch.", input: z.object({}), run: () => "touched" });
  const inner = defineGraph({ name: "inner", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools: [touch] }) })
    .edges({ [START]: "tools", tools: END });
  const tool = graphTool(inner, {
    name: "inner",
    description: "Inner.",
    input: z.object({}),
    toInput: () => createCallMessage(["touch", {}]),
    toResult: (state) => listAnswers(state).join(),
  });
  await run(createDesk([tool], [watch]), { input: createCallMessage(["inner", {}]) }).result;
  expect(seen).toEqual(["inner", "touch"]);
});

test("a fork from a checkpoint inside a graph tool call is a branch of the whole thread, in which that call continues", async () => {
  const log: Log = { done: [] };
  const store = memoryStore();
  const graph = createDesk([research(log)]);
  const inner = researcher(log);
  await run(graph, { store, thread: "t", input: createCallMessage(["research", { topic: "ants" }]) }).result;
  let at = 0;
  for await (const step of getHistory(inner, { store, thread: "t", nesting: "research" }))
    if (step.next.includes("write")) at = step.checkpointId;
  const branch = await fork(inner, { store, thread: "t", at, name: "bees", update: { topic: "bees" } });
  const { state } = await resume(graph, { store, thread: "t", branch }).result;
  expect(listAnswers(state)).toEqual(["read ants, outline bees, write bees"]);
  await pruneThread(store, { thread: "t", keepLast: 1 });
  expect((await getState(graph, { store, thread: "t", branch })).state).toEqual(state);
});

test("a once effect inside a graph tool call counts on a branch where the model repeated the call under another id", async () => {
  const paid: string[] = [];
  const payer = defineGraph({ name: "payer", state: Notes })
    .nodes({
      pay: async ({ topic }, { step }) => ({
        notes: [
          await step(
            "pay",
            () => {
              paid.push(topic);
              return `paid ${topic}`;
            },
            { effect: "once" },
          ),
        ],
      }),
    })
    .edges({ [START]: "pay", pay: END });
  const pay = graphTool(payer, {
    name: "payer",
    description: "Pays.",
    input: topic,
    toInput: (args) => args,
    toResult: ({ notes }) => notes.join(),
  });
  let asked = 0;
  const graph = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
    .nodes({
      think: () => {
        asked += 1;
        const content = [{ type: "call" as const, id: `call ${asked}`, name: "payer", args: { topic: "ann" } }];
        return { messages: [{ role: "assistant" as const, id: `a${asked}`, finish: "calls" as const, content }] };
      },
      tools: toolNode({ tools: [pay] }),
    })
    .edges({ [START]: "think", think: "tools", tools: END });
  const store = memoryStore();
  await run(graph, { store, thread: "t", input: {} }).result;
  let at = 0;
  for await (const step of getHistory(graph, { store, thread: "t" }))
    if (step.source === "input") at = step.checkpointId;
  const doubtful = await fork(graph, { store, thread: "t", at, name: "doubtful" });
  expect(await resume(graph, { store, thread: "t", branch: doubtful }).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "payer.in_doubt", payload: { step: "pay", alreadyOn: "main", outcome: "paid ann" } }],
  });
  const again = await fork(graph, { store, thread: "t", at, name: "again" });
  const { state } = await resume(graph, { store, thread: "t", branch: again, onPriorEffect: "reuse" }).result;
  expect(listAnswers(state)).toEqual(["paid ann"]);
  expect(paid).toEqual(["ann"]);
});

test("a new input that ends a run waiting inside a graph tool call leaves a complete conversation", async () => {
  const tool = askerTool();
  const graph = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
    .nodes({
      think: ({ messages }) => {
        const last = messages.at(-1);
        const words = last?.role === "user" && last.content[0]?.type === "text" ? last.content[0].text : "";
        return words === "ask" ? createCallMessage(["asker", {}]) : {};
      },
      tools: toolNode({ tools: [tool] }),
    })
    .edges({
      [START]: "think",
      think: route(["tools", END], (state) => (state.messages.at(-1)?.role === "assistant" ? "tools" : END)),
      tools: END,
    });
  const user = (id: string, text: string) => ({
    messages: [{ role: "user" as const, id, content: [{ type: "text" as const, text }] }],
  });
  for (const onBusy of ["cancel", "rollback"] as const) {
    const store = memoryStore();
    const at = { store, thread: "t" };
    expect((await run(graph, { ...at, input: user("1", "ask") }).result).status).toBe("waiting");
    const { status, state } = await run(graph, { ...at, input: user("2", "stop"), onBusy }).result;
    expect(status).toBe("done");
    expect(state.messages.map(({ role }) => role)).toEqual(
      onBusy === "cancel" ? ["user", "assistant", "tool", "user"] : ["user"],
    );
    await copyThread(store, "t", "copy");
    expect((await getState(graph, { store, thread: "copy" })).state).toEqual(state);
  }
});

describe("invalid graph tool", () => {
  const usual = { description: "x", input: topic, toInput: (args: { topic: string }) => args, toResult: () => "" };
  test.each([
    [
      "no graph",
      () => graphTool({} as never, { ...usual, name: "x" }),
      /tool "x": `graph` must be the result of defineGraph/,
    ],
    [
      "a mapping that is not a function",
      () => graphTool(researcher({ done: [] }), { ...usual, name: "x", toResult: "y" as never }),
      /tool "x": `toResult` must be a function, got "y"/,
    ],
    [
      "an invalid depth",
      () => graphTool(researcher({ done: [] }), { ...usual, name: "x", maxDepth: 0 }),
      /tool "x": `maxDepth` must be an integer ≥ 1, got 0/,
    ],
    [
      "an unknown option",
      () => graphTool(researcher({ done: [] }), { ...usual, name: "x", effect: "once" } as never),
      /effect/,
    ],
  ])("graphTool with %s is refused", (_what, make, message) => {
    expect(make).toThrow(message);
  });

  test("a graph tool with the name of a node is refused, since their interrupts would share keys", () => {
    const tool = graphTool(researcher({ done: [] }), { ...usual, name: "tools" });
    expect(() => createDesk([tool])).toThrow(/the tool "tools" runs a graph and has the name of a node/);
  });
});

test("a graph tool call inside an unsaved graph is unsaved, and its long-term writes apply when the call is done", async () => {
  const store = memoryStore();
  const writer = defineGraph({ name: "writer", state: Notes })
    .nodes({
      put: async ({ topic }, { longTerm }) => {
        await longTerm("notes").put(topic, { topic });
        return { notes: ["put"] };
      },
    })
    .edges({ [START]: "put", put: END });
  const tool = graphTool(writer, {
    name: "writer",
    description: "Write.",
    input: topic,
    toInput: (args) => args,
    toResult: ({ notes }) => notes.join(),
  });
  const bare = defineGraph({ name: "bare", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools: [tool] }) })
    .edges({ [START]: "tools", tools: END });
  const outer = defineGraph({ name: "outer", state: defineState({ said: channel.list(z.string()) }) })
    .nodes({
      inner: subgraph(bare, {
        persistence: "none",
        input: () => createCallMessage(["writer", { topic: "ants" }]),
        output: (state) => ({ said: listAnswers(state) }),
      }),
    })
    .edges({ [START]: "inner", inner: END });
  const { state } = await run(outer, { store, thread: "t", input: {} }).result;
  expect(state.said).toEqual(["put"]);
  expect(await longTermStore(store).under("notes").get("ants")).toMatchObject({ value: { topic: "ants" } });
});

describe("graph tool call under a changed graph", () => {
  const Asked = defineState({ topic: z.string(), notes: channel.list(z.string()) });
  const Wider = defineState({ topic: z.string(), notes: channel.list(z.string()), more: z.string().default("more") });
  const asks = { name: "asker", interrupts: { scope: z.enum(["wide", "narrow"]) } } as const;
  const usual = {
    name: "research",
    description: "Look.",
    input: topic,
    toInput: (args: { readonly topic: string }) => args,
    toResult: ({ notes }: { readonly notes: readonly string[] }) => notes.join(),
  } as const;
  const tools = {
    same: graphTool(
      defineGraph({ ...asks, state: Asked })
        .nodes({ ask: async ({ topic: on }, { interrupt }) => ({ notes: [`${on}: ${await interrupt("scope")}`] }) })
        .edges({ [START]: "ask", ask: END }),
      usual,
    ),
    wider: graphTool(
      defineGraph({ ...asks, state: Wider })
        .nodes({ ask: async ({ topic: on }, { interrupt }) => ({ notes: [`${on}: ${await interrupt("scope")}`] }) })
        .edges({ [START]: "ask", ask: END }),
      usual,
    ),
    other: graphTool(
      defineGraph({ ...asks, state: Asked })
        .nodes({ other: async ({ topic: on }, { interrupt }) => ({ notes: [`${on}: ${await interrupt("scope")}`] }) })
        .edges({ [START]: "other", other: END }),
      usual,
    ),
    gone: defineTool({ name: "research", description: "Look.", input: topic, run: () => "plain" }),
  };
  function versions(version: number, tool: keyof typeof tools) {
    return defineGraph({ name: "desk", version, state: defineState({ messages: channel.messages() }) })
      .nodes({ tools: toolNode({ tools: [tools[tool]] }) })
      .edges({ [START]: "tools", tools: END });
  }

  async function changed(inner: Parameters<typeof versions>[1]) {
    const store = memoryStore();
    await run(versions(1, "same"), { store, thread: "t", input: createCallMessage(["research", { topic: "bees" }]) })
      .result;
    return resume(versions(2, inner), { store, thread: "t", answers: { "0:0:0/0:0:scope": "wide" } }).result;
  }

  test("an active graph tool call continues under a changed graph that still has its pending node", async () => {
    expect(listAnswers((await changed("wider")).state)).toEqual(["bees: wide"]);
  });

  test("an active graph tool call parks the run when its inner node was removed or the tool no longer runs a graph", async () => {
    const node = await getFailure(changed("other"), "needs_migration");
    expect(node.message).toContain('the node "research.ask" is pending, but the graph has no such node');
    const tool = await getFailure(changed("gone"), "needs_migration");
    expect(tool.message).toContain(
      'a call of the tool "research" has a graph in progress, but the tool runs no graph now',
    );
  });
});

test("nodes of a graph that runs as a tool, and of its subgraphs, update the call until it ends [FX94]", async () => {
  const Empty = defineState({ topic: z.string().default("") });
  const kept: ((partial: { content: string }) => void)[] = [];
  const deep = defineGraph({ name: "deep", state: Empty })
    .nodes({
      dig: (_state, { update }) => {
        update?.({ content: "deep", details: { depth: 2 } });
        if (update !== undefined) kept.push(update);
      },
    })
    .edges({ [START]: "dig", dig: END });
  const inner = defineGraph({ name: "inner", state: Empty })
    .nodes({
      look: (_state, { update }) => update?.({ content: "half", details: { depth: 1 } }),
      below: subgraph(deep, { input: () => ({}), output: () => ({}) }),
    })
    .edges({ [START]: "look", look: "below", below: END });
  const tool = graphTool(inner, {
    name: "look",
    description: "Look something up.",
    input: z.object({}),
    toInput: () => ({}),
    toResult: () => "seen",
  });
  const content = [{ type: "call", id: "c1", name: "look", args: {} }] as const;
  const asking: Message = { role: "assistant", id: "a", content, finish: "calls" };
  let outerUpdate: unknown = "unset";
  const graph = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
    .nodes({
      first: (_state, { update }) => {
        outerUpdate = update;
      },
      tools: toolNode({ tools: [tool] }),
    })
    .edges({ [START]: "first", first: "tools", tools: END });
  const handle = run(graph, { input: { messages: [asking] } });
  const updates: unknown[] = [];
  handle.on((event) => {
    if (event.type === "tool.update") updates.push([event.within, event.callId, event.partial]);
  });
  await handle.result;
  for (const update of kept) update({ content: "late" });
  expect(outerUpdate).toBeUndefined();
  expect(updates).toEqual([
    [undefined, "c1", { content: "half", details: { depth: 1 } }],
    [undefined, "c1", { content: "deep", details: { depth: 2 } }],
  ]);
});
