/** Effects start after the commit of their transition, and each effect has the same id in every run. */
import { describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  END,
  fanOut,
  type Graph,
  inputNode,
  listToolCalls,
  type Model,
  memoryStore,
  route,
  run,
  START,
  type Store,
  toolNode,
} from "../../../src/index.ts";
import { type Commit, type Control, plainCodec } from "../../../src/store.ts";
import { removeKeySalt } from "../../support/remove-key-salt.ts";
import { call, user } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

/** Creates a store whose commits wait until the test releases them one by one. */
function heldStore(): {
  readonly store: Store;
  readonly waiting: () => readonly Commit[];
  readonly letThrough: () => void;
} {
  const inner = memoryStore();
  const waiting: { readonly commit: Commit; readonly go: () => void }[] = [];
  return {
    store: {
      ...inner,
      commit: (commit, onCommitted) => {
        waiting.push({ commit, go: () => inner.commit(commit, onCommitted) });
      },
    },
    waiting: () => waiting.map(({ commit }) => commit),
    letThrough: () => waiting.shift()?.go(),
  };
}

/** Releases the commits of a run one by one; returns the content of each commit and the effects started after it. */
async function commitByCommit(
  begin: (store: Store) => { readonly result: Promise<unknown> },
  started: readonly string[],
  world: VirtualWorld,
): Promise<readonly { readonly commit: Commit; readonly begins: readonly string[] }[]> {
  const { store, waiting, letThrough } = heldStore();
  const steps: { readonly commit: Commit; readonly begins: readonly string[] }[] = [];
  let ended = false;
  const result = begin(store).result.finally(() => {
    ended = true;
  });
  await world.waitUntilIdle();
  while (!ended) {
    const [commit] = waiting();
    if (commit === undefined) {
      await world.advance(1_000);
      continue;
    }
    const before = started.length;
    await world.advance(1_000);
    // No effect starts while the commit waits, whatever the time.
    expect(started.slice(before)).toEqual([]);
    letThrough();
    await world.waitUntilIdle();
    steps.push({ commit, begins: started.slice(before) });
  }
  await result;
  return steps;
}

/** Describes a commit: the next nodes of its checkpoint, or the effects of its rows. */
function describeCommit(commit: Commit): string {
  if (commit.checkpoint === undefined)
    return (commit.effects ?? []).map(({ name, state }) => `${name} ${state}`).join(", ");
  const control = plainCodec.decode(commit.checkpoint.row.control) as Control;
  return `→ ${control.tasks.map(({ node }) => node).join(", ") || "end"}`;
}

const Chat = defineState({ messages: channel.messages(), seen: channel.list(z.string()) });

/** Graph of a body, a model call, a once tool call and a fan-out; each records its start and its id. */
function createDesk(started: string[]): Graph {
  const model: Model = {
    id: "scripted",
    respond: async ({ messages: all }) => {
      started.push("model call");
      const asked = all.some(({ role }) => role === "assistant");
      return asked
        ? { content: [{ type: "text", text: "done" }], finish: "stop" }
        : { content: [call("pay", {}, "c1")], finish: "calls" };
    },
  };
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    input: z.object({}),
    effect: "once",
    run: (_args, { idempotencyKey }) => {
      started.push(`pay ${removeKeySalt(idempotencyKey)}`);
      return "paid";
    },
  });
  return defineGraph({ name: "desk", state: Chat })
    .nodes({
      prepare: async (_state, { step }) => {
        started.push("prepare");
        await step("look", () => void started.push("look"), { effect: "once" });
      },
      ask: async (state, runtime) => {
        started.push("ask");
        return { messages: [await runtime.model({ model, request: { messages: state.messages, tools: [] } })] };
      },
      tools: toolNode({ tools: [pay] }),
      each: inputNode(z.string(), (_state, { input }) => {
        started.push(`each ${input}`);
        return { seen: [input] };
      }),
    })
    .edges({
      [START]: "prepare",
      prepare: "ask",
      ask: route(["tools", END], ({ messages: all }) => {
        const last = all.at(-1);
        return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
      }),
      tools: fanOut("each", () => ["x", "y"]),
      each: "ask",
    }) as Graph;
}

const input = { messages: [user("go")] };

describe("effects start after the commit of their transition", () => {
  test("bodies, steps, model calls, tool calls and sends of a graph start after their commit is reported [E52]", async () => {
    const started: string[] = [];
    const world = createVirtualWorld();
    const graph = createDesk(started);
    const steps = await commitByCommit((store) => run(graph, { store, thread: "t", world, input }), started, world);
    expect(steps.map(({ commit, begins }) => [describeCommit(commit), begins])).toEqual([
      ["→ prepare", ["prepare"]],
      ["look started", ["look"]],
      ["→ ask", ["ask", "model call"]],
      ["→ tools", ["pay t/main/2:0/c1"]],
      ["→ each, each", ["each x", "each y"]],
      ["→ ask", ["ask", "model call"]],
      ["→ end", []],
    ]);
  });

  test("promises and timers of a durable machine start after their commit is reported [E52]", async () => {
    const started: string[] = [];
    const world = createVirtualWorld();
    const machine = createTestMachine(started);
    const steps = await commitByCommit(
      (store) => run(machine, { store, thread: "t", world, input: {} }),
      started,
      world,
    );
    expect(steps.map(({ commit, begins }) => [describeCommit(commit), begins])).toEqual([
      ["→ first", []],
      ["work started", ["work t/main/0:0/w1"]],
      ["→ waiting", ["idle t/main/1:1/w0"]],
      ["idle started", []],
      ["→ last", []],
      ["work started", ["work t/main/2:0/w2"]],
      ["→ end", []],
    ]);
  });
});

function createTestMachine(started: string[]) {
  const work = fromPromise(async ({ self }) => {
    started.push(`work ${removeKeySalt(self.sessionId)}`);
  });
  // The run of a machine with a running promise stays in memory.
  const idle = fromPromise<void>(({ self }) => {
    started.push(`idle ${removeKeySalt(self.sessionId)}`);
    return new Promise(() => undefined);
  });
  const machine = setup({ actors: { work, idle } }).createMachine({
    id: "hand",
    initial: "first",
    states: {
      first: { invoke: { src: "work", id: "w1", onDone: "waiting" } },
      waiting: { invoke: { src: "idle", id: "w0" }, after: { 5000: "last" } },
      last: { invoke: { src: "work", id: "w2", onDone: "end" } },
      end: { type: "final" },
    },
  });
  return durableMachine(machine, { version: 1, effects: { idle: "pure" } });
}

describe("deterministic effect ids", () => {
  test("effects of a graph have the same ids in every run [E52]", async () => {
    const [one, other] = [
      await recordedIds(createDesk([]), { input }, 1),
      await recordedIds(createDesk([]), { input }, 2_000_000),
    ];
    expect(one).toEqual([
      "task prepare 0:0",
      "step t/main/0:0/look",
      "task ask 1:0",
      "model t/main/1:0/model",
      "tool t/main/2:0/c1",
      "task tools 2:0",
      "task each 3:0",
      "task each 3:1",
      "task ask 4:0",
      "model t/main/4:0/model",
    ]);
    expect(other).toEqual(one);
  });

  test("effects and timers of a durable machine have the same ids in every run [E52]", async () => {
    const graph = createTestMachine([]) as Graph;
    const [one, other] = [
      await recordedIds(graph, { input: {} }, 1),
      await recordedIds(graph, { input: {} }, 2_000_000),
    ];
    expect(one).toEqual([
      "step t/main/0:0/w1",
      "timer xstate.after.5000.hand.waiting 1:0",
      "step t/main/1:1/w0",
      "step t/main/2:0/w2",
    ]);
    expect(other).toEqual(one);
  });
});

/** Returns all recorded effects of a run in order, with their ids. */
async function recordedIds(graph: Graph, options: { readonly input: object }, at: number): Promise<readonly string[]> {
  const world = createVirtualWorld(at);
  const inner = memoryStore();
  const ids: string[] = [];
  const note = (id: string): void => {
    if (!ids.includes(id)) ids.push(id);
  };
  const store: Store = {
    ...inner,
    commit: (commit, onCommitted) => {
      for (const { kind, name, idempotencyKey } of commit.effects ?? [])
        if (kind !== "task") note(`${kind} ${removeKeySalt(idempotencyKey) || name}`);
      const control =
        commit.checkpoint === undefined ? undefined : (plainCodec.decode(commit.checkpoint.row.control) as Control);
      if (control?.pending === undefined) for (const { node, id } of control?.tasks ?? []) note(`task ${node} ${id}`);
      for (const { id, armed } of control?.pending?.timers ?? []) note(`timer ${id} ${armed}`);
      inner.commit(commit, onCommitted);
    },
  };
  const handle = run(graph, { ...options, store, thread: "t", world });
  await world.advance(10_000);
  await handle.result;
  return ids;
}
