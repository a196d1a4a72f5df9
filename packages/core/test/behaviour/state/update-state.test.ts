/** updateState writes to a thread like its nodes. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  approval,
  channel,
  commandTargets,
  decide,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  fanOut,
  fork,
  type Graph,
  getHistory,
  getState,
  goto,
  inject,
  inputNode,
  join,
  listInterrupts,
  longTermStore,
  type Message,
  memoryStore,
  resume,
  route,
  run,
  START,
  type Store,
  send,
  subgraph,
  toolNode,
  updateState,
} from "../../../src/index.ts";
import { pruneThread } from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";

const Review = defineState({
  files: z.array(z.string()).default([]),
  findings: channel.list(z.string()),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
});

function review(log: string[] = []) {
  return defineGraph({ name: "review", state: Review, context: defineContext({ user: z.string() }) })
    .nodes({
      collect: () => ({ files: ["a", "b"] }),
      lint: () => ({ findings: ["lint"] }),
      inspect: inputNode(z.string(), (_state, { input }) => {
        log.push(`inspect ${input}`);
        return { findings: [`${input}!`] };
      }),
      judge: (state) => {
        log.push("judge");
        return { verdict: state.findings.length > 30 ? "fix" : "ship" };
      },
      fix: () => goto("collect"),
    })
    .edges({
      [START]: ["collect", "lint"],
      collect: fanOut("inspect", (state) => state.files, { otherwise: "judge" }),
      lint: "judge",
      inspect: "judge",
      judge: route(["fix", END], (state) => (state.verdict === "fix" ? "fix" : END)),
      fix: commandTargets("collect", END),
    });
}

const context = { user: "ada" };

async function listStates(graph: Graph, store: Store) {
  const entries: unknown[] = [];
  for await (const { nodes, next, changes, step } of getHistory(graph, { store, thread: "t" }))
    entries.push({ nodes, next, changes, step });
  return entries;
}

test("updateState applies the reducers and outgoing edges of the node as its return would [E45]", async () => {
  const log: string[] = [];
  const graph = review(log);
  const store = memoryStore();
  await updateState(graph, { store, thread: "t", as: START, values: { files: [] } });
  expect((await getState(graph, { store, thread: "t" })).next).toEqual(["collect", "lint"]);
  await updateState(graph, { store, thread: "t", as: "collect", values: { files: ["x", "y"], findings: ["seen"] } });
  const { state, next } = await getState(graph, { store, thread: "t" });
  expect(state).toEqual({ files: ["x", "y"], findings: ["seen"], verdict: null });
  // The other pending task stays, and the sends of the node's edge are added.
  expect(next).toEqual(["lint", "inspect"]);
  const done = await resume(graph, { store, thread: "t", context }).result;
  expect(done.state.findings).toEqual(["seen", "lint", "x!", "y!"]);
  expect(log.slice(0, 2)).toEqual(["inspect x", "inspect y"]);
});

test("a thread rebuilt from updates has the same history as its run, and several updates in one call are one superstep [E45]", async () => {
  const lived = memoryStore();
  const graph = review();
  await run(graph, { store: lived, thread: "t", context }).result;
  const rebuilt = memoryStore();
  const at = { store: rebuilt, thread: "t" };
  await updateState(graph, { ...at, as: START });
  await updateState(graph, {
    ...at,
    updates: [
      { as: "collect", values: { files: ["a", "b"] } },
      { as: "lint", values: { findings: ["lint"] } },
    ],
  });
  // Three parallel tasks ran: judge, and inspect twice; one update replaces the writes of both inspect tasks.
  await updateState(graph, {
    ...at,
    updates: [
      { as: "inspect", values: { findings: ["a!", "b!"] } },
      { as: "judge", values: { verdict: "ship" } },
    ],
  });
  await updateState(graph, { ...at, as: "judge", values: { verdict: "ship" } });
  expect(await listStates(graph as Graph, rebuilt)).toEqual(await listStates(graph as Graph, lived));
  const [a, b] = await Promise.all([lived, rebuilt].map((store) => getState(graph, { store, thread: "t" })));
  expect(a?.state).toEqual(b?.state);
});

test("an ambiguous `as` of updateState is an error that changes nothing, and the default is the single last writer [E45]", async () => {
  const graph = review();
  const store = memoryStore();
  const at = { store, thread: "t" };
  await updateState(graph, { ...at, as: START });
  const early = await getFailure(updateState(graph, { ...at, values: { verdict: "fix" } }), "invalid_option");
  expect(early.message).toContain("no node has written yet");
  await updateState(graph, { ...at, updates: [{ as: "collect" }, { as: "lint" }] });
  const head = await store.head("t");
  const both = await getFailure(updateState(graph, { ...at, values: { verdict: "fix" } }), "invalid_option");
  expect(both.message).toContain('"collect" and "lint"');
  expect(await store.head("t")).toEqual(head);
  await updateState(graph, { ...at, as: "judge", values: { verdict: "ship" } });
  // A second update for the same node with another verdict: its route decides again.
  await updateState(graph, { ...at, values: { verdict: "fix" } });
  expect((await getState(graph, at)).next).toEqual(["fix"]);
});

test("an invalid update is refused like an invalid node return, and the thread is released [E45]", async () => {
  const graph = review();
  const store = memoryStore();
  const at = { store, thread: "t" };
  await getFailure(updateState(graph, { ...at, as: "judge", values: {} }), "unknown_thread");
  await updateState(graph, { ...at, as: START });
  const wrong = { verdict: "burn" } as never;
  const unfit = await getFailure(updateState(graph, { ...at, as: "judge", values: wrong }), "invalid_update");
  expect(unfit.place).toMatchObject({ graph: "review", node: "judge", channel: "verdict", thread: "t" });
  await getFailure(updateState(graph, { ...at, as: "judge", values: { nothing: 1 } as never }), "unknown_channel");
  await getFailure(updateState(graph, { ...at, as: "nobody" as never }), "invalid_option");
  await getFailure(updateState(graph, { ...at, as: "fix" }), "invalid_option");
  await updateState(graph, { ...at, as: "fix", goto: "collect" });
  expect((await getState(graph, at)).next).toContain("collect");
  const types = (): void => {
    // @ts-expect-error no node of this name
    updateState(graph, { ...at, as: "juge" });
    // @ts-expect-error no channel of this name
    updateState(graph, { ...at, as: "judge", values: { verdct: "fix" } });
  };
  expect(types).toBeTypeOf("function");
});

test("updateState works on a waiting, failed or finished thread and is refused on a running thread [E45]", async () => {
  const graph = defineGraph({ name: "asks", state: Review, interrupts: { ok: z.boolean() } })
    .nodes({
      ask: async (_state, { interrupt }) => ({ verdict: (await interrupt("ok")) ? "ship" : "fix" }),
      say: (state) => ({ findings: [String(state.verdict)] }),
    })
    .edges({ [START]: "ask", ask: "say", say: END });
  const store = memoryStore();
  await run(graph, { store, thread: "t" }).result;
  // Writing the return value of the node answers its interrupt.
  await updateState(graph, { store, thread: "t", as: "ask", values: { verdict: "ship" } });
  const between = await getState(graph, { store, thread: "t" });
  expect(between).toMatchObject({ next: ["say"], interrupts: [], status: "paused" });
  expect((await resume(graph, { store, thread: "t" }).result).state.findings).toEqual(["ship"]);
  await updateState(graph, { store, thread: "t", as: "ask", values: { verdict: "fix" } });
  expect((await resume(graph, { store, thread: "t" }).result).state.findings).toEqual(["ship", "fix"]);
  const busy = run(graph, { store, thread: "b" });
  busy.on(({ type }) => {
    if (type === "task.started") void getFailure(updateState(graph, { store, thread: "b", as: "ask" }), "thread_busy");
  });
  await busy.result;
});

test("updateState as another node of a sequential graph is refused while an interrupt is open, and changes nothing [FX4]", async () => {
  const graph = defineGraph({ name: "line", state: Review, interrupts: { ok: z.boolean() } })
    .nodes({
      a: () => ({ findings: ["a"] }),
      ask: async (_state, { interrupt }) => ({ findings: [`ok ${await interrupt("ok")}`] }),
      b: () => ({ findings: ["b"] }),
    })
    .edges({ [START]: "a", a: "ask", ask: "b", b: END });
  const store = memoryStore();
  const at = { store, thread: "t" };
  const { interrupts } = (await run(graph, at).result) as { readonly interrupts?: readonly { readonly id: string }[] };
  const refused = await getFailure(updateState(graph, { ...at, as: "b" }), "invalid_option");
  expect(refused.message).toContain('Pass as: "ask"');
  expect((await listInterrupts(store)).map(({ id }) => id)).toEqual(interrupts?.map(({ id }) => id));
  // An update of the node before plans the node again, and closes the interrupt.
  await updateState(graph, { ...at, as: "a", values: { findings: ["again"] } });
  expect([await listInterrupts(store), (await getState(graph, at)).next]).toEqual([[], ["ask"]]);
  expect((await resume(graph, at).result).status).toBe("waiting");
  await updateState(graph, { ...at, as: "ask", values: { findings: ["by an update"] } });
  expect([
    await listInterrupts(store),
    (await store.interrupts("t", "main")).filter(({ answer }) => answer === undefined),
  ]).toEqual([[], []]);
  expect((await resume(graph, at).result).state.findings).toEqual(["a", "again", "by an update", "b"]);
});

test("an interrupt that stays open after an update stays in listInterrupts and can be answered [FX5]", async () => {
  const graph = defineGraph({ name: "pair", state: Review, interrupts: { one: z.string(), two: z.string() } })
    .nodes({
      one: async (_state, { interrupt }) => ({ findings: [await interrupt("one")] }),
      two: async (_state, { interrupt }) => ({ findings: [await interrupt("two")] }),
      last: () => ({ findings: ["last"] }),
    })
    .edges({ [START]: ["one", "two"], one: "last", two: END, last: END });
  const store = memoryStore();
  const at = { store, thread: "t" };
  await run(graph, at).result;
  await updateState(graph, { ...at, as: "one", values: { findings: ["by an update"] } });
  expect((await listInterrupts(store)).map(({ key }) => key)).toEqual(["two"]);
  expect(await getState(graph, at)).toMatchObject({ status: "waiting", next: ["two", "last"] });
  const end = await resume(graph, { ...at, answers: { two: "answered" } }).result;
  expect([end.status, await listInterrupts(store)]).toEqual(["done", []]);
  expect(end.state.findings).toEqual(["by an update", "answered", "last"]);
});

test("updateState acts as a node with commands: no target, END, several targets and sends [FX17]", async () => {
  const graph = defineGraph({ name: "commands", state: Review })
    .nodes({
      choose: () => [goto("left"), send("inspect", "x")],
      left: () => ({ findings: ["left"] }),
      right: () => ({ findings: ["right"] }),
      inspect: inputNode(z.string(), (_state, { input }) => ({ findings: [input] })),
    })
    .edges({
      [START]: "choose",
      choose: commandTargets("left", "right", "inspect"),
      left: END,
      right: END,
      inspect: END,
    });
  const chosen = [
    [{ goto: [] }, []],
    [{ goto: END }, []],
    [{ goto: "left" }, ["left"]],
    [{ goto: ["left", "right"] }, ["left", "right"]],
    [{ goto: ["right"], sends: [send("inspect", "a"), send("inspect", "b")] }, ["right", "a", "b"]],
    [{ sends: [send("inspect", "a")] }, ["a"]],
  ] as const;
  for (const [update, findings] of chosen) {
    const at = { store: memoryStore(), thread: "t" };
    await updateState(graph, { ...at, as: START });
    await updateState(graph, { ...at, as: "choose", values: { verdict: "ship" }, ...update });
    const { state } = await (findings.length === 0 ? getState(graph, at) : resume(graph, at).result);
    expect([state.verdict, state.findings]).toEqual(["ship", findings]);
  }
  const at = { store: memoryStore(), thread: "t" };
  await updateState(graph, { ...at, as: START });
  const missing = await getFailure(updateState(graph, { ...at, as: "choose" }), "invalid_option");
  expect(missing.message).toContain("goto: []");
  await getFailure(updateState(graph, { ...at, as: "choose", goto: "inspect" }), "dead_route");
  // @ts-expect-error a send is made with send(…)
  await getFailure(updateState(graph, { ...at, as: "choose", sends: [{ target: "inspect" }] }), "invalid_option");
  const line = review();
  await updateState(line, { ...at, thread: "u", as: START });
  await getFailure(updateState(line, { ...at, thread: "u", as: "lint", goto: END }), "dead_route");
});

test("pending tasks outside an update keep their ids, interrupts and recorded results [E45]", async () => {
  const done: string[] = [];
  const act = (key: string): string => `${done.push(key)} done`;
  let broken = true;
  const inner = defineGraph({
    name: "inner",
    state: defineState({ said: channel.list(z.string()) }),
    interrupts: { in: z.string() },
  })
    .nodes({
      first: async (_state, { step }) => ({
        said: [await step("call", ({ idempotencyKey }) => act(idempotencyKey), { effect: "once" })],
      }),
      ask: async (_state, { interrupt }) => ({ said: [await interrupt("in")] }),
    })
    .edges({ [START]: "first", first: "ask", ask: END });
  const graph = defineGraph({
    name: "beside",
    state: defineState({ log: channel.list(z.string()) }),
    interrupts: { ok: z.string(), other: z.string(), in: z.string() },
  })
    .nodes({
      pay: async (_state, { step }) => {
        const paid = await step("pay", ({ idempotencyKey }) => act(idempotencyKey), { effect: "once" });
        return { log: [paid] };
      },
      fail: () => {
        if (broken) throw new Error("down");
        return { log: ["mended"] };
      },
      ask: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
      also: async (_state, { interrupt }) => ({ log: [await interrupt("other")] }),
      deep: subgraph(inner, { input: () => ({}), output: ({ said }) => ({ log: said }) }),
      next: () => ({ log: ["next"] }),
    })
    .edges({
      [START]: ["pay", "fail", "ask", "also", "deep"],
      ask: "next",
      pay: END,
      fail: END,
      also: END,
      deep: END,
      next: END,
    });
  const store = memoryStore();
  const at = { store, thread: "t" };
  await getFailure(run(graph, at).result, "node_failed");
  const before = await getState(graph, at);
  expect(before.interrupts.map(({ key }) => key)).toEqual(["ok", "other", "deep.in"]);
  await updateState(graph, { ...at, as: "ask", values: { log: ["written by an update"] } });
  await updateState(graph, { ...at, as: "next", values: { log: ["next by an update"] } });
  const after = await getState(graph, at);
  expect(after.interrupts.map(({ id }) => id)).toEqual(before.interrupts.slice(1).map(({ id }) => id));
  expect(after.next).toEqual(["pay", "fail", "also", "deep"]);
  broken = false;
  const late = await getFailure(resume(graph, { ...at, answers: { ok: "late" } }).result, "already_answered");
  expect(late.details).toMatchObject({ answeredBy: "updateState" });
  const end = await resume(graph, { ...at, answers: { other: "also", "deep.in": "deep" } }).result;
  expect(end.state.log).toEqual([
    "written by an update",
    "next by an update",
    "1 done",
    "mended",
    "also",
    "2 done",
    "deep",
  ]);
  const withoutSalt = done.map((key) => key.replace(/^t\/[0-9a-z]{12}\//, "t/"));
  expect(withoutSalt).toEqual(["t/main/0:0/pay", "t/main/0:4/0:0/call"]);
});

test.each(["a join", "a deferred node"])(
  "%s waits for pending tasks next to an update, which sees the values of the previous step",
  async (kind) => {
    const meets = kind === "a join" ? join("meet") : "meet";
    const graph = defineGraph({
      name: "beside",
      state: defineState({ log: channel.list(z.string()), word: channel.ephemeral(z.string()) }),
    })
      .nodes({
        begin: () => ({ word: "go" }),
        left: ({ word }) => ({ log: [`left ${word}`] }),
        right: ({ word }) => ({ log: [`right ${word}`] }),
        meet: { run: ({ word }) => ({ log: [`meet ${word}`] }), defer: kind !== "a join" },
      })
      .edges({ [START]: "begin", begin: ["left", "right"], left: meets, right: meets, meet: END });
    const at = { store: memoryStore(), thread: "t" };
    await run(graph, { ...at, breakpoints: { before: ["left"] } }).result;
    await updateState(graph, { ...at, as: "left", values: { log: ["left by an update"] } });
    expect((await getState(graph, at)).next).toEqual(["right"]);
    const end = await resume(graph, at).result;
    expect([end.status, end.state.log]).toEqual(["done", ["left by an update", "right go", "meet undefined"]]);
  },
);

test("a pending deferred node runs once, also when an update of an earlier node leads to it again", async () => {
  const graph = defineGraph({ name: "late", state: defineState({ log: channel.list(z.string()) }) })
    .nodes({
      left: () => ({ log: ["left"] }),
      right: () => ({ log: ["right"] }),
      meet: { run: () => ({ log: ["meet"] }), defer: true },
    })
    .edges({ [START]: ["left", "right"], left: "meet", right: "meet", meet: END });
  const at = { store: memoryStore(), thread: "t" };
  await run(graph, { ...at, breakpoints: { before: ["meet"] } }).result;
  await updateState(graph, { ...at, as: "left", values: { log: ["left by an update"] } });
  expect((await getState(graph, at)).next).toEqual(["meet"]);
  expect((await resume(graph, at).result).state.log).toEqual(["left", "right", "left by an update", "meet"]);
});

test("a task added by an update never reuses the id of a task of that step, also after a prune removed its records", async () => {
  const done: string[] = [];
  const interrupts = { one: z.string(), two: z.string() };
  const graph = defineGraph({ name: "beside", state: defineState({ log: channel.list(z.string()) }), interrupts })
    .nodes({
      ask: async (_state, { interrupt }) => goto(END, { log: [await interrupt("one")] }),
      pay: async (_state, { step, interrupt }) => {
        await step("call", () => done.push("pay"), { effect: "once" });
        return { log: [await interrupt("two")] };
      },
      also: async (_state, { interrupt }) => ({ log: [await interrupt("one")] }),
      before: () => ({}),
      send: async (_state, { step, interrupt }) => {
        await step("call", () => done.push("send"), { effect: "once" });
        return { log: [await interrupt("two")] };
      },
    })
    .edges({
      [START]: ["ask", "pay", "also"],
      ask: commandTargets("before", END),
      pay: END,
      also: END,
      before: "send",
      send: END,
    });
  const store = memoryStore();
  const at = { store, thread: "t" };
  await run(graph, at).result;
  await updateState(graph, { ...at, as: "pay", values: { log: ["paid"] } });
  await updateState(graph, { ...at, as: "also", values: { log: ["also"] } });
  expect(await pruneThread(store, { thread: "t", keepLast: 1 })).toEqual({ threads: 1, checkpoints: 1 });
  await updateState(graph, { ...at, as: "before" });
  const asked = await resume(graph, { ...at, answers: { one: "one" } }).result;
  expect([asked.status, done]).toEqual(["waiting", ["pay", "send"]]);
  const end = await resume(graph, { ...at, answers: { two: "two" } }).result;
  expect(end.state.log).toEqual(["paid", "also", "one", "two"]);
});

test("an interrupt closed by an update does not park the run under a graph that no longer declares it [E50]", async () => {
  const createAskingGraph = (name: string) => {
    const interrupts = { [name]: z.string(), two: z.string() };
    return defineGraph({ name: "asks", state: defineState({ log: channel.list(z.string()) }), interrupts })
      .nodes({
        one: async (_state, { interrupt }) => ({ log: [await interrupt(name)] }),
        two: async (_state, { interrupt }) => ({ log: [await interrupt("two")] }),
      })
      .edges({ [START]: ["one", "two"], one: END, two: END });
  };
  const store = memoryStore();
  const at = { store, thread: "t" };
  await run(createAskingGraph("before"), at).result;
  await updateState(createAskingGraph("before"), { ...at, as: "one", values: { log: ["one"] } });
  const end = await resume(createAskingGraph("after"), { ...at, answers: { two: "two" } }).result;
  expect(end.state.log).toEqual(["one", "two"]);
});

/** Graph with three parallel tool calls, one with an approval; optionally with its conversation in a subgraph. */
function calling() {
  const tool = (name: string) =>
    defineTool({
      name,
      description: name,
      input: z.object({}),
      effect: "idempotent",
      inject: { notes: inject.store("notes") },
      run: async (_args, { injected }) => {
        await injected.notes.put(name, 1);
        return `${name} done`;
      },
    });
  const ask = defineMiddleware({
    name: "ask",
    interrupts: { approve: approval },
    beforeTool: ({ call }) => (call.name === "pay" ? decide.interrupt(call, "it costs") : undefined),
  });
  const call = (name: string) => ({ type: "call" as const, id: name, name, args: {} });
  const createCallInput = (content: readonly ReturnType<typeof call>[], id: string) => ({
    messages: [{ role: "assistant" as const, id, finish: "calls" as const, content }],
  });
  const state = defineState({ messages: channel.messages() });
  return defineGraph({ name: "calling", state, interrupts: { approve: approval } })
    .nodes({
      model: ({ messages: { length } }) =>
        length > 3
          ? createCallInput([], `m${length}`)
          : createCallInput([call("look"), call("pay"), call("read")], `m${length}`),
      tools: toolNode({ tools: [tool("look"), tool("pay"), tool("read")], middleware: [ask] }),
    })
    .edges({
      [START]: "model",
      model: route(["tools", END], ({ messages: { length } }) => (length > 4 ? END : "tools")),
      tools: END,
    });
}

const createUserInput = (id: string) => ({ role: "user" as const, id, content: [{ type: "text" as const, text: id }] });

function listLines(conversation: readonly Message[]): readonly string[] {
  return conversation.map((message) =>
    message.role === "tool"
      ? `${message.callId}: ${message.content.map((block) => (block.type === "text" ? block.text : "")).join("")}`
      : message.role,
  );
}

const closed = (why: string) => ["assistant", "look: look done", `pay: Not executed: ${why}.`, "read: read done"];

test("a tool call left without an answer by an update is answered with its recorded result or as not executed [I7]", async () => {
  const graph = calling();
  const store = memoryStore();
  const at = { store, thread: "t" };
  expect((await run(graph, { ...at, input: { messages: [createUserInput("a")] } }).result).status).toBe("waiting");
  await updateState(graph, { ...at, as: START, values: { messages: [createUserInput("b")] } });
  const { state } = await resume(graph, at).result;
  const why = "an update replaced the tool node";
  expect(listLines(state.messages)).toEqual(["user", ...closed(why), "user", "assistant"]);
  expect((await longTermStore(store).under("notes").list()).map(({ key }) => key)).toEqual(["look", "read"]);
  const own = { role: "tool" as const, id: "x", callId: "look", name: "look", content: [], isError: false };
  await run(graph, { store, thread: "u", input: { messages: [createUserInput("a")] } }).result;
  await updateState(graph, { store, thread: "u", as: "tools", values: { messages: [own] } });
  const { state: mine } = await getState(graph, { store, thread: "u" });
  expect(listLines(mine.messages).slice(2)).toEqual(["look: ", ...closed(why).slice(2)]);
});

test("a persistent subgraph answers its active tool calls when an update replaces its node [I7]", async () => {
  const inner = calling();
  const outer = defineGraph({
    name: "outer",
    state: defineState({ heard: channel.list(z.string()), nth: z.number().default(0) }),
  })
    .nodes({
      help: subgraph(inner, {
        input: ({ nth }) => ({ messages: [createUserInput(`u${nth}`)] }),
        output: (_output, { ended }) => ({ heard: [...listLines(ended.messages)] }),
        persistence: "per-thread",
      }),
      count: ({ nth }) => ({ nth: nth + 1 }),
    })
    .edges({ [START]: "help", help: "count", count: route(["help", END], ({ nth }) => (nth < 2 ? "help" : END)) });
  const store = memoryStore();
  const at = { store, thread: "t" };
  await run(outer, at).result;
  await updateState(outer, { ...at, as: "help", values: {} });
  const { state } = await resume(outer, at).result;
  expect(state.heard).toEqual(["user", ...closed("cancelled by a new input"), "user", "assistant"]);
  expect((await longTermStore(store).under("notes").list()).length).toBe(2);
});

test("a fork with pending tool calls answers them at its new input, and an edit that would separate call and answer is refused [I7]", async () => {
  const graph = calling();
  const at = { store: memoryStore(), thread: "t" };
  await run(graph, { ...at, input: { messages: [createUserInput("a")] } }).result;
  const { checkpointId } = await getState(graph, at);
  const forkThread = (name: string, update: object) => fork(graph, { ...at, at: checkpointId, name, update });
  const error = await getFailure(forkThread("parted", { messages: [createUserInput("b")] }), "invalid_update");
  expect(error.message).toContain('the call "look" would have no answer');
  await forkThread("mended", { messages: [{ remove: "m1" }, createUserInput("b")] });
  const branch = await forkThread("other", {});
  const { state } = await run(graph, { ...at, branch, input: { messages: [createUserInput("b")] } }).result;
  const none = ["look", "pay", "read"].map((call) => `${call}: Not executed: cancelled by a new input.`);
  expect(listLines(state.messages)).toEqual(["user", "assistant", ...none, "user", "assistant"]);
});

test("a rollback of a run that started with pending tool calls leaves those calls answered [I7]", async () => {
  const graph = calling();
  const at = { store: memoryStore(), thread: "t" };
  await run(graph, { ...at, input: { messages: [createUserInput("a")] } }).result;
  const { checkpointId } = await getState(graph, at);
  const branch = await fork(graph, { ...at, at: checkpointId, name: "other" });
  const next = { ...at, branch, input: { messages: [createUserInput("b")] } };
  expect((await run(graph, { ...next, breakpoints: { before: ["model"] } }).result).status).toBe("paused");
  const { state } = await run(graph, { ...next, input: { messages: [createUserInput("c")] }, onBusy: "rollback" })
    .result;
  expect(listLines(state.messages)).toEqual([
    "user",
    "assistant",
    ...["look", "pay", "read"].map((call) => expect.stringContaining(`${call}: Not executed: `)),
    "user",
    "assistant",
  ]);
  expect(state.messages.flatMap((each) => (each.role === "user" ? [each.id] : []))).toEqual(["a", "c"]);
});
