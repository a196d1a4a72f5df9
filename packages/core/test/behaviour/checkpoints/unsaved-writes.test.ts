/** Refused store writes: no event, number or answer exists for an unsaved write. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  engine,
  type MemoryStore,
  memoryStore,
  type RunEvent,
  resume,
  run,
  START,
  StatewrightError,
  type Store,
  streamEvents,
  subgraph,
  ToolError,
  toolNode,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

type Commit = Parameters<Store["commit"]>[0];

/** Wraps a store; writes fail for which `refuses` returns an error code. */
function refusing(store: MemoryStore, refuses: (commit: Commit) => "store_full" | "store_failed" | undefined): Store {
  return {
    ...store,
    commit: (commit, onCommitted) => {
      const code = refuses(commit);
      if (code === undefined) return store.commit(commit, onCommitted);
      // The refused write keeps its position, and the other writes are unaffected.
      const refusal = new StatewrightError(code, { what: "the test refuses it", next: "Try again" });
      store.commit({ ...commit, after: Number.MAX_SAFE_INTEGER }, () => onCommitted(refusal));
    },
  };
}

async function numbers(store: Store): Promise<readonly number[]> {
  const found: number[] = [];
  for await (const { seq } of streamEvents({ store, thread: "t" })) found.push(seq);
  return found;
}

function listNumbersUpTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

const counting = defineState({ log: channel.list(z.string()) });

test("the end event of a run that could not be saved has the number before it, and its own number stays free", async () => {
  const store = memoryStore();
  let broken = false;
  const graph = defineGraph({ name: "g", state: counting })
    .nodes({
      a: () => {
        broken = true;
        return { log: ["a"] };
      },
    })
    .edges({ [START]: "a", a: END });
  for (const code of ["store_full", "store_failed"] as const) {
    broken = false;
    const handle = run(graph, {
      thread: code,
      store: refusing(store, () => (broken ? code : undefined)),
      world: createVirtualWorld(),
    });
    const observed: RunEvent[] = [];
    handle.on((event) => observed.push(event));
    if (code === "store_full") expect((await handle.result).status).toBe("paused");
    else await getFailure(handle.result, "store_failed");
    const saved = await store.events(code, { after: 0, limit: 10 });
    expect(observed.filter(({ type }) => /^run|^step/.test(type)).map(({ type, seq }) => [type, seq])).toEqual([
      ["run.started", 1],
      ["step.committed", 2],
      [code === "store_full" ? "run.paused" : "run.failed", 2],
    ]);
    expect(saved).toHaveLength(2);
  }
});

test("supersteps of an unsaved inner graph take no event numbers of the thread", async () => {
  const store = memoryStore();
  const inner = defineGraph({ name: "inner", state: counting })
    .nodes({ a: () => ({ log: ["a"] }), b: () => ({ log: ["b"] }) })
    .edges({ [START]: "a", a: "b", b: END });
  const graph = defineGraph({ name: "g", state: counting })
    .nodes({
      call: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }), persistence: "none" }),
      end: () => ({ log: ["end"] }),
    })
    .edges({ [START]: "call", call: "end", end: END });
  const observed: RunEvent[] = [];
  const handle = run(graph, { thread: "t", store });
  handle.on((event) => observed.push(event));
  await handle.result;
  expect(observed.filter(({ type }) => type === "step.committed")).toHaveLength(6);
  const saved = await numbers(store);
  expect(saved).toEqual(listNumbersUpTo(saved.length));
});

describe("thread after a failed write", () => {
  const together = new Promise<void>((resolve) => setImmediate(resolve));
  const inner = (name: string) =>
    defineGraph({ name, state: counting })
      .nodes({
        again: async (state, { step }) => {
          await step("wait", () => together);
          return { log: [`${name} ${state.log.length}`] };
        },
        end: () => ({ log: ["end"] }),
      })
      .edges({ [START]: "again", again: "end", end: END });
  const graph = defineGraph({ name: "g", state: counting })
    .nodes({
      one: subgraph(inner("one"), { input: () => ({}), output: () => ({ log: ["one"] }) }),
      other: subgraph(inner("other"), { input: () => ({}), output: () => ({ log: ["other"] }) }),
      end: () => ({ log: ["end"] }),
    })
    .edges({ [START]: ["one", "other"], one: "end", other: "end", end: END });

  test("event numbers of a thread have no gap after a failed write, and the first failure is the cause", async () => {
    const store = memoryStore();
    let refused = 0;
    const full = refusing(store, ({ checkpoint, branch }) => {
      const first = branch.includes("/") && checkpoint?.row.step === 1 && refused++ === 0;
      return first ? "store_full" : undefined;
    });
    const { status } = await run(graph, { thread: "t", store: full }).result;
    expect([status, refused > 0]).toEqual(["paused", true]);
    const ended = await resume(graph, { thread: "t", store }).result;
    expect(ended).toMatchObject({ status: "done", state: { log: ["one", "other", "end"] } });
    const saved = await numbers(store);
    expect(saved).toEqual(listNumbersUpTo(saved.length));
  });

  test("a store refuses a write whose number does not follow the last", async () => {
    const store = memoryStore();
    const { epoch, branch } = await store.claim({ thread: "t", graph: "g", version: 1, shape: "s", at: 0 });
    const commitAfter = (after: number, seq: number): Promise<string> =>
      new Promise((resolve) =>
        store.commit({ thread: "t", branch, epoch, after, seq }, (failure) => resolve(failure?.code ?? "ok")),
      );
    expect([await commitAfter(0, 1), await commitAfter(2, 3), await commitAfter(1, 2)]).toEqual([
      "ok",
      "store_failed",
      "ok",
    ]);
  });
});

describe("tool call interrupted by a pause", () => {
  const chat = defineState({ messages: channel.messages() });
  const asking = {
    role: "assistant",
    id: "m1",
    finish: "calls",
    content: [1, 2, 3].map((nth) => ({ type: "call" as const, id: `c${nth}`, name: "act", args: { nth } })),
  } as const;

  /**
   * Creates three tool calls: the first hangs in the first process, the second is retried, the third completes late.
   */
  function acting(calls: string[], world: ReturnType<typeof createVirtualWorld>, hangs: () => boolean) {
    const act = defineTool({
      name: "act",
      description: "Act.",
      input: z.object({ nth: z.int() }),
      effect: "idempotent",
      retry: { attempts: 5, on: ["unavailable"], initialMs: 1_000 },
      run: ({ nth }) => {
        calls.push(`act ${nth}`);
        if (nth === 1 && hangs()) return new Promise<string>(() => undefined);
        if (nth === 2 && hangs()) throw ToolError.unavailable("Not yet");
        return `did ${nth}`;
      },
    });
    const graph = defineGraph({ name: "g", state: chat })
      .nodes({
        ask: () => ({ messages: [asking] }),
        tools: toolNode({ tools: [act], strategy: { batch: 2 } }),
      })
      .edges({ [START]: "ask", ask: "tools", tools: END });
    return { graph, world };
  }

  const answers = (state: unknown): readonly string[] =>
    (state as { readonly messages: readonly { readonly role: string; readonly isError?: boolean }[] }).messages.flatMap(
      (message) => (message.role === "tool" ? [JSON.stringify(message).replace(/.*"text":"([^"]*)".*/, "$1")] : []),
    );

  test("a tool call interrupted by a full store is not answered before the resume", async () => {
    const store = memoryStore();
    const calls: string[] = [];
    let hangs = true;
    const { graph, world } = acting(calls, createVirtualWorld(), () => hangs);
    const full = refusing(store, ({ effects = [], release }) =>
      hangs && release !== true && effects.some(({ kind }) => kind === "tool") ? "store_full" : undefined,
    );
    const first = run(graph, { thread: "t", store: full, world });
    const ended = first.result;
    await world.waitUntilIdle();
    expect((await ended).status).toBe("paused");
    hangs = false;
    const { status, state } = await resume(graph, { thread: "t", store: full, world }).result;
    expect([status, answers(state)]).toEqual(["done", ["did 1", "did 2", "did 3"]]);
  });

  test("a tool call interrupted by an immediate process stop is not answered before the resume", async () => {
    const store = memoryStore();
    const calls: string[] = [];
    let hangs = true;
    const { graph, world } = acting(calls, createVirtualWorld(), () => hangs);
    const host = engine({ store, graphs: [graph], world });
    await host.start();
    const handle = host.run(graph, { thread: "t" });
    await world.waitUntilIdle();
    const stopped = host.stop({ now: true });
    await world.waitUntilIdle();
    await stopped;
    expect((await handle.result).status).toBe("paused");
    hangs = false;
    const { status, state } = await resume(graph, { thread: "t", store, world }).result;
    expect([status, answers(state)]).toEqual(["done", ["did 1", "did 2", "did 3"]]);
  });
});
