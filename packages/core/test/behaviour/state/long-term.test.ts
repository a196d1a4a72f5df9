/** Long-term store in runs: the writes of a superstep are applied once with its commit, or not at all. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { toModelTool } from "../../../src/adapter.ts";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  inject,
  join,
  type LongTerm,
  longTermStore,
  type MemoryStore,
  memoryStore,
  type NodeRuntime,
  resume,
  run,
  START,
  type Store,
  subgraph,
  toolNode,
} from "../../../src/index.ts";
import { createOverlay } from "../../../src/long-term/overlay.ts";
import { createCodec, type LongTermChange, memoryCache } from "../../../src/store.ts";
import { createDeferred, getFailure, ignoreResult } from "../../support/failure.ts";
import { Chat, call, createToolLoop, Desk, getAnswerText, listEvents, runToolLoop } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const State = defineState({ log: channel.list(z.string()) });
type Body = (
  state: { readonly log: readonly string[] },
  runtime: NodeRuntime,
) => Promise<{ log: string[] } | undefined>;

function listNotes(store: Pick<Store, "longTerm">, world = createVirtualWorld()): LongTerm {
  return longTermStore(store, { world }).under("notes");
}

async function readNotes(notes: LongTerm): Promise<Readonly<Record<string, unknown>>> {
  return Object.fromEntries((await notes.search()).map(({ key, value }) => [key, value]));
}

/** Creates a graph of one node. */
function createSingleNode(work: Body, more: object = {}) {
  return defineGraph({ name: "alone", state: State })
    .nodes({ work: { run: work, ...more } })
    .edges({ [START]: "work", work: END });
}

/** Creates a graph of two parallel nodes. */
function createParallelNodes(one: Body, other: Body, more: object = {}) {
  return defineGraph({ name: "together", state: State })
    .nodes({ one: { run: one, ...more }, other: { run: other, ...more } })
    .edges({ [START]: ["one", "other"], one: END, other: END });
}

/** Returns the store of the next process. */
function killed(store: MemoryStore): MemoryStore {
  const next = store.peer();
  store.crash();
  return next;
}

test("a long-term write is visible to its node at once, and to others after the commit of its superstep", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const outside = listNotes(store, world);
  await outside.put("old", 1);
  const halted = createDeferred();
  const handle = run(
    createSingleNode(async (_state, { longTerm }) => {
      const notes = longTerm("notes");
      await notes.put("diet", { text: "no meat" });
      await notes.delete("old");
      const own = [await readNotes(notes), (await notes.search({ text: "meat" })).length, await notes.get("old")];
      await halted.promise;
      return { log: [JSON.stringify(own)] };
    }),
    { store, world, thread: "t" },
  );
  await world.waitUntilIdle();
  expect(await readNotes(outside)).toEqual({ old: 1 });
  halted.resolve();
  expect((await handle.result).state.log).toEqual([JSON.stringify([{ diet: { text: "no meat" } }, 1, undefined])]);
  expect(await readNotes(outside)).toEqual({ diet: { text: "no meat" } });
});

test("a long-term write sets its own update time and keeps the creation time of the item", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  await listNotes(store, world).put("diet", 1);
  await world.advance(5);
  const graph = createSingleNode(async (_state, { longTerm }) => {
    await longTerm("notes").put("diet", 2, { ttlMs: 100 });
    const { createdAt, updatedAt, expiresAt } = (await longTerm("notes").get("diet")) ?? {};
    return { log: [[createdAt, updatedAt, expiresAt].join()] };
  });
  const { state } = await run(graph, { store, world, thread: "t" }).result;
  expect(state.log).toEqual(["1000000,1000005,1000105"]);
  expect(await listNotes(store, world).get("diet")).toMatchObject({ createdAt: 1_000_000, updatedAt: 1_000_005 });
});

test("a superstep without long-term access makes no long-term read or write in the store", async () => {
  const inner = memoryStore();
  const commits: object[] = [];
  const refuse = (): never => {
    throw new Error("asked");
  };
  const store: Store = {
    ...inner,
    longTerm: { get: refuse, page: refuse, refresh: refuse, write: refuse, sweep: refuse },
    commit: (commit, onCommitted) => {
      commits.push(commit);
      inner.commit(commit, onCommitted);
    },
  };
  await run(
    createParallelNodes(
      async (_state, { step }) => ({ log: [await step("s", () => "a")] }),
      async () => ({ log: ["b"] }),
    ),
    { store, thread: "t" },
  ).result;
  expect(commits.length).toBeGreaterThan(1);
  expect(commits.every((commit) => (commit as { longTerm?: unknown }).longTerm === undefined)).toBe(true);
});

describe("long-term writes of a failed superstep", () => {
  test("long-term writes of a failed superstep are discarded, and its rerun writes each once", async () => {
    const store = memoryStore();
    let broken = true;
    const graph = createSingleNode(async (_state, { longTerm }) => {
      await longTerm("notes").put(broken ? "first" : "second", 1);
      if (broken) throw new Error("broken");
      return { log: ["done"] };
    });
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    expect(await readNotes(listNotes(store))).toEqual({});
    broken = false;
    await resume(graph, { store, thread: "t" }).result;
    expect(await readNotes(listNotes(store))).toEqual({ second: 1 });
  });

  test("long-term writes of a completed sibling of a failed task are kept for the resume", async () => {
    const store = memoryStore();
    let runs = 0;
    let broken = true;
    const graph = createParallelNodes(
      async (_state, { longTerm }) => {
        await longTerm("notes").put("one", ++runs);
        return { log: ["one"] };
      },
      async (_state, { longTerm }) => {
        if (broken) throw new Error("broken");
        await longTerm("notes").put("other", 1);
        return { log: ["other"] };
      },
    );
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    expect(await readNotes(listNotes(store))).toEqual({});
    broken = false;
    const next = killed(store);
    await resume(graph, { store: next, thread: "t" }).result;
    expect([runs, await readNotes(listNotes(next))]).toEqual([1, { one: 1, other: 1 }]);
  });

  test("long-term writes of failed attempts are discarded, and those of the last attempt and an error handler count", async () => {
    const world = createVirtualWorld();
    const put = async ({ longTerm }: NodeRuntime, key: string) => longTerm("notes").put(key, 1);
    const retried = memoryStore();
    await run(
      createSingleNode(
        async (_state, runtime) => {
          await put(runtime, `attempt${runtime.attempt}`);
          if (runtime.attempt === 1) throw new Error("again");
          return undefined;
        },
        { retry: { attempts: 2, initialMs: 0 } },
      ),
      { store: retried, thread: "t" },
    ).result;
    expect(await readNotes(listNotes(retried))).toEqual({ attempt2: 1 });
    const handled = memoryStore();
    await run(
      createSingleNode(
        async (_state, runtime) => {
          await put(runtime, "body");
          throw new Error("broken");
        },
        {
          onError: async (_state: unknown, runtime: NodeRuntime) => {
            await put(runtime, "handler");
          },
        },
      ),
      { store: handled, world, thread: "t" },
    ).result;
    expect(await readNotes(listNotes(handled))).toEqual({ handler: 1 });
  });
});

test("a late long-term write of an abandoned attempt is dropped and logged", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const late = createDeferred();
  const graph = createSingleNode(
    async (_state, { longTerm, attempt }) => {
      if (attempt === 2) return undefined;
      await late.promise;
      await longTerm("notes").put("late", 1);
      return undefined;
    },
    { timeoutMs: 100, retry: { attempts: 2, initialMs: 0 } },
  );
  const handle = run(graph, { store, world, thread: "t" });
  await world.advance(200);
  expect((await handle.result).status).toBe("done");
  late.resolve();
  await world.waitUntilIdle();
  expect(await readNotes(listNotes(store))).toEqual({});
  expect(world.lines.map(({ message }) => message)).toContain(
    'a late write of "work" to the long-term store was dropped',
  );
});

test("two tasks that write the same long-term item leave the write of the task folded last, whatever the completion order", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const first = createDeferred();
  const graph = createParallelNodes(
    async (_state, { longTerm }) => {
      await first.promise;
      await longTerm("notes").put("same", "one");
      return undefined;
    },
    async (_state, { longTerm }) => {
      await longTerm("notes").put("same", "other");
      first.resolve();
      return undefined;
    },
  );
  await run(graph, { store, world, thread: "t" }).result;
  expect(await readNotes(listNotes(store))).toEqual({ same: "other" });
});

test("a crash between a task and its commit writes no long-term item, and the next process writes each item once", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const halted = createDeferred();
  let runs = 0;
  let hangs = true;
  const graph = createParallelNodes(
    async (_state, { longTerm }) => {
      const notes = longTerm("notes");
      await notes.put("count", (((await notes.get("count"))?.value as number | undefined) ?? 0) + 1);
      runs += 1;
      return { log: ["one"] };
    },
    async () => {
      if (hangs) await halted.promise;
      return { log: ["other"] };
    },
  );
  ignoreResult(run(graph, { store, world, thread: "t" }).result);
  await world.waitUntilIdle();
  const next = killed(store);
  expect([runs, await readNotes(listNotes(next))]).toEqual([1, {}]);
  hangs = false;
  expect((await resume(graph, { store: next, world, thread: "t" }).result).state.log).toEqual(["one", "other"]);
  expect([runs, await readNotes(listNotes(next))]).toEqual([1, { count: 1 }]);
});

test("a body that waits for an answer makes its long-term writes once, after the answer", async () => {
  const store = memoryStore();
  const graph = defineGraph({ name: "asks", state: State, interrupts: { ok: z.boolean() } })
    .nodes({
      work: async (_state, { longTerm, interrupt }) => {
        await longTerm("notes").put("asked", 1);
        await interrupt("ok");
        await longTerm("notes").put("answered", 1);
        return undefined;
      },
    })
    .edges({ [START]: "work", work: END });
  await run(graph, { store, thread: "t" }).result;
  expect(await readNotes(listNotes(store))).toEqual({});
  await resume(graph, { store, thread: "t", answers: { ok: true } }).result;
  expect(await readNotes(listNotes(store))).toEqual({ asked: 1, answered: 1 });
});

describe("long-term writes of a recorded step", () => {
  test("long-term writes of a step are recorded with its result and kept when the step is replayed", async () => {
    const store = memoryStore();
    let steps = 0;
    let broken = true;
    const graph = createSingleNode(async (_state, { longTerm, step }) => {
      await step("count", async ({ longTerm }) => {
        steps += 1;
        await longTerm("notes").put("steps", steps);
      });
      const { steps: found } = await readNotes(longTerm("notes"));
      if (broken) throw new Error("broken");
      return { log: [`saw ${found}`] };
    });
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    expect(await readNotes(listNotes(store))).toEqual({});
    broken = false;
    const next = store.peer();
    const { state } = await resume(graph, { store: next, thread: "t" }).result;
    expect([steps, state.log, await readNotes(listNotes(next))]).toEqual([1, ["saw 1"], { steps: 1 }]);
  });

  test("a failed step makes no long-term write", async () => {
    const store = memoryStore();
    const graph = createSingleNode(async (_state, { step }) => {
      const failing = step("fails", async ({ longTerm }) => {
        await longTerm("notes").put("never", 1);
        throw new Error("broken");
      });
      await expect(failing).rejects.toThrow("broken");
      return undefined;
    });
    await run(graph, { store, thread: "t" }).result;
    expect(await readNotes(listNotes(store))).toEqual({});
  });

  test("a step may read but not write through the long-term store of its node body", async () => {
    const store = memoryStore();
    const graph = createSingleNode(async (_state, { longTerm, step }) => {
      await step("wrong", async () => {
        await longTerm("notes").get("k");
        await longTerm("notes").put("k", 1);
      });
      return undefined;
    });
    const error = await getFailure(run(graph, { store, thread: "t" }).result, "invalid_option");
    expect(error.message).toContain("step(key, ({ longTerm }) => …)");
  });
});

describe("long-term writes of an inner graph", () => {
  const Inner = defineState({ found: z.array(z.string()).default([]) });
  const pair = (persistence: "per-call" | "none", ends: () => Promise<void>) => {
    const inner = defineGraph({ name: "inner", state: Inner })
      .nodes({
        first: async (_state, { longTerm }) => {
          await longTerm("notes").put("first", 1);
          return undefined;
        },
        second: async (_state, { longTerm }) => {
          const found = Object.keys(await readNotes(longTerm("notes")));
          await longTerm("notes").put("second", 2);
          return { found };
        },
      })
      .edges({ [START]: "first", first: "second", second: END });
    return defineGraph({ name: "outer", state: State })
      .nodes({
        call: subgraph(inner, {
          persistence,
          input: () => ({}),
          output: ({ found }) => ({ log: [...found] }),
        }),
        beside: async () => {
          await ends();
          return undefined;
        },
        last: async (_state, { longTerm }) => ({ log: Object.keys(await readNotes(longTerm("notes"))) }),
      })
      .edges({ [START]: ["call", "beside"], call: join("last"), beside: join("last"), last: END } as never);
  };

  test.each([
    ["per-call", { first: 1, second: 2 }],
    ["none", {}],
  ] as const)(
    "long-term writes of a subgraph with persistence %s follow its own supersteps, or those of the outer graph when unsaved",
    async (persistence, within) => {
      const store = memoryStore();
      const world = createVirtualWorld();
      const halted = createDeferred();
      const handle = run(
        pair(persistence, () => halted.promise),
        { store, world, thread: "t" },
      );
      await world.waitUntilIdle();
      await world.waitUntilIdle();
      expect(await readNotes(listNotes(store))).toEqual(within);
      halted.resolve();
      expect((await handle.result).state).toEqual({ log: ["first", "first", "second"] });
      expect(await readNotes(listNotes(store))).toEqual({ first: 1, second: 2 });
    },
  );

  test.each(["per-call", "none"] as const)(
    "long-term writes of a subgraph with persistence %s survive a retry of sibling calls, and no hook sees them twice",
    async (persistence) => {
      const store = memoryStore();
      const world = createVirtualWorld();
      const hooked: string[] = [];
      const Talk = defineState({ messages: channel.messages() });
      const put = defineTool({
        name: "put",
        description: "Put.",
        input: z.object({}),
        effect: "idempotent",
        run: async (_args, { longTerm: open }) => {
          await open("notes").put("first", 1);
          return "kept";
        },
      });
      const say = defineTool({
        name: "say",
        description: "Say.",
        input: z.object({}),
        effect: "pure",
        run: () => "said",
      });
      const inner = defineGraph({ name: "inner", state: Talk })
        .nodes({
          tools: toolNode({
            tools: [put, say],
            strategy: "sequential",
            middleware: [
              {
                name: "strict",
                required: true,
                beforeTool: ({ call: { name } }) => {
                  hooked.push(name);
                  if (hooked.join(" ") === "put say") throw new Error("not now");
                  return undefined;
                },
              },
            ],
          }),
        })
        .edges({ [START]: "tools", tools: END });
      const content = [call("put", {}, "a"), call("say", {}, "b")];
      const asked = { role: "assistant", id: "m1", finish: "calls", content } as const;
      const graph = defineGraph({ name: "outer", state: State })
        .nodes({
          ask: {
            run: subgraph(inner, { persistence, input: () => ({ messages: [asked] }), output: () => undefined }),
            retry: { attempts: 2, initialMs: 0, on: () => true },
          },
        })
        .edges({ [START]: "ask", ask: END });
      const handle = run(graph, { store, world, thread: "t" });
      await world.advance(1_000);
      expect([(await handle.result).status, hooked]).toEqual(["done", ["put", "say", "say"]]);
      expect(await readNotes(listNotes(store))).toEqual({ first: 1 });
    },
  );
});

test("a run without a store has no long-term store and fails with an error that says so", async () => {
  const graph = createSingleNode(async (_state, { longTerm }) => {
    await longTerm("notes").put("k", 1);
    return undefined;
  });
  const error = await getFailure(run(graph, {}).result, "missing_store");
  expect(error.place).toMatchObject({ graph: "alone", node: "work" });
});

test("an unsavable long-term value fails its task and is not written", async () => {
  const store = memoryStore();
  const graph = createSingleNode(async (_state, { longTerm }) => {
    await longTerm("notes").put("good", 1);
    await longTerm("notes").put("bad", () => 1);
    return undefined;
  });
  await getFailure(run(graph, { store, thread: "t" }).result, "unencodable_value");
  expect(await readNotes(listNotes(store))).toEqual({});
});

test("long-term values are encoded with the codec of the run", async () => {
  class Money {
    readonly cents: number;
    constructor(cents: number) {
      this.cents = cents;
    }
  }
  const codec = createCodec([
    {
      tag: "money",
      matches: (value): value is Money => value instanceof Money,
      encode: ({ cents }) => cents,
      decode: (cents) => new Money(cents as number),
    },
  ]);
  const store = memoryStore();
  const graph = createSingleNode(async (_state, { longTerm }) => {
    await longTerm("notes").put("price", new Money(5));
    const item = await longTerm("notes").get("price");
    return { log: [String(item?.value instanceof Money)] };
  });
  expect((await run(graph, { store, codec, thread: "t" }).result).state.log).toEqual(["true"]);
  expect((await longTermStore(store, { codec }).under("notes").get("price"))?.value).toBeInstanceOf(Money);
});

test("a fork keeps long-term writes of the original and writes on top of them", async () => {
  const store = memoryStore();
  const graph = defineGraph({ name: "counts", state: State })
    .nodes({
      count: async (_state, { longTerm }) => {
        const notes = longTerm("notes");
        await notes.put("count", (((await notes.get("count"))?.value as number | undefined) ?? 0) + 1);
        return { log: ["counted"] };
      },
    })
    .edges({ [START]: "count", count: END });
  await run(graph, { store, thread: "t" }).result;
  const branch = await fork(graph, { store, thread: "t", at: 1, name: "again" });
  await resume(graph, { store, thread: "t", branch }).result;
  expect(await readNotes(listNotes(store))).toEqual({ count: 2 });
});

test("a once node whose result is reused on another branch repeats no long-term write", async () => {
  const store = memoryStore();
  let runs = 0;
  const graph = createSingleNode(
    async (_state, { longTerm }) => {
      await longTerm("notes").put("paid", ++runs);
      return { log: [`paid ${runs}`] };
    },
    { effect: "once" },
  );
  await run(graph, { store, thread: "t" }).result;
  await listNotes(store).put("paid", "corrected");
  const branch = await fork(graph, { store, thread: "t", at: 1, name: "again" });
  const { state } = await resume(graph, { store, thread: "t", branch, onPriorEffect: "reuse" }).result;
  expect([state.log, runs, await readNotes(listNotes(store))]).toEqual([["paid 1"], 1, { paid: "corrected" }]);
});

test("a cached node result makes no long-term write", async () => {
  const store = memoryStore();
  const cache = { store: memoryCache(), key: () => "same" };
  const graph = createSingleNode(
    async (_state, { longTerm, run }) => {
      await longTerm("notes").put(run.thread, 1);
      return { log: ["done"] };
    },
    { cache },
  );
  for (const thread of ["t", "u"]) {
    const world = createVirtualWorld();
    expect((await run(graph, { store, world, thread }).result).state.log).toEqual(["done"]);
    await world.waitUntilIdle();
  }
  expect(await readNotes(listNotes(store))).toEqual({ t: 1 });
});

test("a run ended by a new input keeps the long-term writes of completed tasks", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const graph = createParallelNodes(
    async (_state, { longTerm }) => {
      await longTerm("notes").put("one", 1);
      return { log: ["one"] };
    },
    async () => {
      throw new Error("broken");
    },
  );
  await getFailure(run(graph, { store, world, thread: "t" }).result, "node_failed");
  expect(await readNotes(listNotes(store))).toEqual({});
  ignoreResult(run(graph, { store, world, thread: "t", onBusy: "cancel" }).result);
  await world.waitUntilIdle();
  expect(await readNotes(listNotes(store))).toEqual({ one: 1 });
});

describe("long-term store of a tool", () => {
  const input = z.object({ text: z.string().default("SENTINEL-arg") });

  test("a long-term store handle reaches the tool, and neither its name nor its items appear in a model request [S1.42]", async () => {
    const store = memoryStore();
    await longTermStore(store).under("namespaceHidden").put("keyHidden", "SENTINEL-value");
    const found: unknown[] = [];
    const remember = defineTool({
      name: "remember",
      description: "Remember.",
      input,
      inject: { notesHidden: inject.store("namespaceHidden") },
      effect: "idempotent",
      run: async ({ text }, { injected }) => {
        found.push(injected.notesHidden.namespace, (await injected.notesHidden.get("keyHidden"))?.value);
        await injected.notesHidden.put("mine", text);
        return "done";
      },
    });
    expect(remember.spec.inject).toEqual({ notesHidden: "store" });
    const loop = await runToolLoop({
      tools: [remember],
      turns: [[call("remember", { notesHidden: "forged" })], ["end"]],
      store,
    });
    expect(found).toEqual([["namespaceHidden"], "SENTINEL-value"]);
    expect(listEvents(loop, "tool.forged_arg_stripped")).toMatchObject([{ keys: ["notesHidden"] }]);
    const sent =
      JSON.stringify(toModelTool(remember.spec)) + loop.wires.join("").replaceAll('{"notesHidden":"forged"}', "");
    expect(sent).not.toMatch(/Hidden|SENTINEL-value/);
    expect((await longTermStore(store).under("namespaceHidden").get("mine"))?.value).toBe("SENTINEL-arg");
  });

  test("a tool reads state, context, the long-term store, the abort signal and events [S1.7]", async () => {
    const seenBy: unknown[] = [];
    const store = memoryStore();
    await longTermStore(store).under("users", "ann").put("diet", "no meat");
    const all = defineTool({
      name: "all",
      description: "Read all.",
      input,
      inject: { cart: Chat.from((chat) => chat.cart), customer: Desk.from((desk) => desk.customer) },
      effect: "pure",
      run: async (_args, { injected, context, longTerm, signal, emit }) => {
        const { customer, cart } = injected;
        seenBy.push(cart, customer, context, (await longTerm("users", customer).get("diet"))?.value, signal.aborted);
        emit("spoke", { ok: true });
        return "done";
      },
    });
    const loop = await runToolLoop({
      tools: [all],
      turns: [[call("all")], ["end"]],
      store,
      context: { customer: "ann" },
    });
    expect(seenBy).toEqual([[], "ann", { customer: "ann" }, "no meat", false]);
    expect(listEvents(loop, "custom")).toMatchObject([{ name: "spoke", payload: { ok: true } }]);
  });

  test("a tool puts, finds and deletes items in the store of its run under namespaces of its choice [S1.27]", async () => {
    const store = memoryStore();
    await longTermStore(store).under("users", "bob").put("diet", "no fish");
    const found: unknown[] = [];
    const cook = defineTool({
      name: "cook",
      description: "Cook.",
      input,
      run: async (_args, { longTerm: open }) => {
        await open("users", "ann").put("diet", "no meat");
        await open("users", "bob").delete("diet");
        const savedNotes = [await open("users", "ann").get("diet"), await open("users", "bob").get("diet")];
        found.push(...savedNotes.map((item) => item?.value));
        return "cooked";
      },
    });
    await runToolLoop({ tools: [cook], turns: [[call("cook")], ["end"]], store });
    expect(found).toEqual(["no meat", undefined]);
    const users = longTermStore(store);
    expect((await users.under("users", "ann").get("diet"))?.value).toBe("no meat");
    expect(await users.under("users", "bob").get("diet")).toBeUndefined();
    const without = runToolLoop({ tools: [cook], turns: [[call("cook")], ["end"]], store: "none" });
    await expect(without).rejects.toMatchObject({ code: "missing_store" });
  });

  const put = (name: string, work: (notes: LongTerm, attempt: number) => Promise<unknown>, more: object = {}) =>
    defineTool({
      name,
      description: "Put.",
      input: z.object({}),
      inject: { notes: inject.store("notes") },
      effect: "idempotent",
      run: async (_args, { injected, attempt }) => `${name} ${JSON.stringify(await work(injected.notes, attempt))}`,
      ...more,
    });

  test("a failed tool call makes no long-term write, and of a retried call the last attempt counts", async () => {
    const store = memoryStore();
    const fails = put("fails", async (notes) => {
      await notes.put("fails", 1);
      throw new Error("broken");
    });
    const again = put(
      "again",
      async (notes, attempt) => {
        await notes.put(`attempt${attempt}`, 1);
        if (attempt === 1) throw new Error("once more");
        return Object.keys(await readNotes(notes));
      },
      { retry: { attempts: 2, initialMs: 0, on: () => true } },
    );
    const loop = createToolLoop({ tools: [fails, again], turns: [[call("fails"), call("again")], ["end"]], store });
    const handle = loop.start();
    await loop.world.advance(10_000);
    await handle.result;
    expect(await readNotes(listNotes(store))).toEqual({ attempt2: 1 });
  });

  test("a tool call sees long-term writes of earlier calls, and of two writes to one item the later call counts", async () => {
    const store = memoryStore();
    const one = put("one", async (notes) => {
      await notes.put("one", 1);
      await notes.put("same", "one");
    });
    const two = put("two", async (notes) => {
      const found = await readNotes(notes);
      await notes.put("same", "two");
      return found;
    });
    const turns = [[call("one"), call("two")], ["end"]];
    const loop = await runToolLoop({ tools: [one, two], turns, store, strategy: "sequential" });
    const answers = loop.result.state.messages.filter(({ role }) => role === "tool");
    expect(answers.map((answer) => getAnswerText(answer as never))).toEqual([
      "one undefined",
      'two {"one":1,"same":"one"}',
    ]);
    expect(await readNotes(listNotes(store))).toEqual({ one: 1, same: "two" });
  });

  test("a tool call completed before a crash is not repeated, and its long-term writes are made once", async () => {
    const store = memoryStore();
    const halted = createDeferred();
    let calls = 0;
    let hangs = true;
    const counts = put("counts", async (notes) => {
      calls += 1;
      await notes.put("count", (((await notes.get("count"))?.value as number | undefined) ?? 0) + 1);
    });
    const waits = put("waits", async (notes) => {
      if (hangs) await halted.promise;
      return readNotes(notes);
    });
    const loop = createToolLoop({ tools: [counts, waits], turns: [[call("counts"), call("waits")], ["end"]], store });
    ignoreResult(loop.start().result);
    await loop.world.waitUntilIdle();
    const next = killed(store);
    expect([calls, await readNotes(listNotes(next))]).toEqual([1, {}]);
    hangs = false;
    const { state } = await loop.again({}, { store: next }).result;
    expect(getAnswerText(state.messages.at(-2) as never)).toBe('waits {"count":1}');
    expect([calls, await readNotes(listNotes(next))]).toEqual([1, { count: 1 }]);
    expect((await next.effects("t", "main")).filter(({ task }) => task.includes("longTerm"))).toEqual([]);
  });

  test("a tool call completed before a cancel or a new input keeps the long-term writes that its answer reports", async () => {
    for (const how of ["cancel", "interrupt"] as const) {
      const store = memoryStore();
      const halted = createDeferred();
      const puts = put("puts", (notes) => notes.put("one", how));
      const waits = put("waits", () => halted.promise);
      const loop = createToolLoop({ tools: [puts, waits], turns: [[call("puts"), call("waits")], ["end"]], store });
      const { world, graph } = loop;
      const handle = loop.start();
      await world.waitUntilIdle();
      expect(await readNotes(listNotes(store))).toEqual({});
      if (how === "cancel") {
        handle.cancel();
        await world.advance(10_000);
        expect((await handle.result).status).toBe("cancelled");
      } else {
        ignoreResult(handle.result);
        const next = { store: killed(store), world, thread: "t", context: {}, input: { messages: [] } };
        await run(graph, { ...next, onBusy: "cancel" }).result;
      }
      expect(await readNotes(listNotes(store.peer())), how).toEqual({ one: how });
    }
  });

  test("a tool with a long-term store in a run without a store fails the run before its call", async () => {
    let calls = 0;
    const tool = put("tool", async () => {
      calls += 1;
    });
    const loop = createToolLoop({ tools: [tool], turns: [[call("tool")], ["end"]], store: "none" });
    await getFailure(loop.start().result, "missing_store");
    expect(calls).toBe(0);
  });
});

test("long-term reads of a task over its own changes equal the reads of others after the superstep, for random changes", async () => {
  const ids = fc.constantFrom("a", "b", "c", "d");
  const change = fc.record({
    path: fc.array(ids, { minLength: 1, maxLength: 2 }),
    key: ids,
    value: fc.option(fc.constantFrom("red fox", "red hen", "blue hen"), { nil: undefined }),
  });
  const apply = async (
    root: LongTerm,
    { path, key, value }: { path: string[]; key: string; value: string | undefined },
  ) => (value === undefined ? root.under(...path).delete(key) : root.under(...path).put(key, { text: value }));
  const look = async (root: LongTerm) => ({
    all: await root.search(),
    below: await root.under("a").search({ filter: { text: { ne: "red fox" } } }),
    words: await root.search({ text: "red h*" }),
    list: await root.under("b").list({ limit: 2 }),
    rest: await root.search({ after: (await root.search({ limit: 3 }))[2], limit: 4 }),
    names: await root.namespaces(),
    short: await root.namespaces({ depth: 1 }),
    item: await root.under("a").get("b"),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 12 }),
      fc.array(change, { maxLength: 12 }),
      async (before, changes) => {
        const store = memoryStore();
        const world = createVirtualWorld();
        const outside = longTermStore(store, { world });
        for (const each of before) await apply(outside, each);
        let inside: unknown;
        const graph = createSingleNode(async (_state, { longTerm }) => {
          for (const each of changes) await apply(longTerm(), each);
          inside = await look(longTerm());
          return undefined;
        });
        await run(graph, { store, world, thread: "t" }).result;
        expect(inside).toEqual(await look(outside));
      },
    ),
    { seed: 7, numRuns: 100 },
  );
});

test("alternating long-term writes and reads of a body process each of its changes once", async () => {
  let looked = 0;
  const under = {
    get: async () => undefined,
    page: async () => [],
    refresh: async () => [],
  };
  const changes: LongTermChange[] = [];
  const counted = new Proxy(changes, {
    get: (of, name) => {
      if (typeof name === "string" && /^\d+$/.test(name)) looked += 1;
      return Reflect.get(of, name) as unknown;
    },
  });
  const reader = createOverlay(under, counted);
  const put = (n: number): LongTermChange => ({ put: { namespace: "n/", key: `k${n}`, value: `${n}`, updatedAt: n } });
  for (let n = 0; n < 500; n++) {
    changes.push(put(n));
    expect((await reader.get({ namespace: "n/", key: `k${n}` }, 1))?.value).toBe(`${n}`);
    await reader.page({ namespace: "n/", deep: true, at: 1, limit: 10 });
  }
  expect(looked).toBe(500);
});
