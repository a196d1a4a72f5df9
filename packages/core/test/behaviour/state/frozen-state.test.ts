import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  getState,
  inputNode,
  type Message,
  memoryStore,
  resume,
  route,
  run,
  START,
  updateState,
} from "../../../src/index.ts";
import { collectEvents, getFailure } from "../../support/failure.ts";

const S = defineState({
  user: z.object({ name: z.string(), tags: z.array(z.string()) }).default({ name: "ann", tags: ["a"] }),
  when: z.map(z.string(), z.object({ n: z.number() })).default(new Map([["k", { n: 1 }]])),
  at: z.date().default(new Date(5)),
  any: z.unknown(),
  log: channel.list(z.object({ n: z.number() })),
  chat: channel.messages(),
  sum: channel.reduce(z.object({ n: z.number() }).default({ n: 0 }), (sum, by: number) => ({ n: sum.n + by })),
});
type Loose = {
  user: { name: string; tags: string[] };
  when: Map<string, { n: number }>;
  at: Date;
  any: { inside: unknown[] };
  log: { n: number }[];
  chat: Message[];
  sum: { n: number };
} & Record<string, unknown>;

const writes: Readonly<Record<string, (state: Loose) => unknown>> = {
  "a channel": (state) => (state.user = { name: "", tags: [] }),
  "a new channel": (state) => (state["more"] = 1),
  "a field": (state) => (state.user.name = "bob"),
  "a list inside": (state) => state.user.tags.push("b"),
  "a list's item": (state) => (state.log[0]!.n = 9),
  "a list": (state) => state.log.pop(),
  "a map": (state) => state.when.set("k", { n: 2 }),
  "a value in a map": (state) => (state.when.get("k")!.n = 2),
  "a date": (state) => state.at.setTime(0),
  "a message": (state) => ((state.chat[0] as { id: string }).id = "x"),
  "the conversation": (state) => state.chat.push(message),
  "a value created by a reducer": (state) => (state.sum.n = 9),
  "a value frozen by user code": (state) => state.any.inside.push(1),
};

/** State type without readonly, as untyped code sees it. */
function loosely(state: object): Loose {
  return state as Loose;
}

const message: Message = { role: "user", id: "m", content: [{ type: "text", text: "hello" }] };
const shallow = () => Object.freeze({ inside: [] });
const setUp = () => ({ log: [{ n: 1 }], chat: [message], sum: 1, any: shallow() });

describe.each(Object.entries(writes))("write to %s [E7]", (_name, write) => {
  test("a write to frozen state in a node throws, the error names the node and the state is unchanged", async () => {
    const store = memoryStore();
    const graph = defineGraph({ name: "write", state: S })
      .nodes({ first: setUp, bad: (state) => void write(loosely(state)) })
      .edges({ [START]: "first", first: "bad", bad: END });
    const error = await getFailure(run(graph, { store, thread: "t", input: { any: 1 } }).result, "node_failed");
    expect(error.place.node).toBe("bad");
    expect(error.cause).toBeInstanceOf(TypeError);
    const again = await getFailure(resume(graph, { store: store.peer(), thread: "t" }).result, "node_failed");
    expect(again.cause).toBeInstanceOf(TypeError);
  });

  test("a write to frozen state in a route, or in the selection of sends, throws", async () => {
    const base = defineGraph({ name: "write", state: S }).nodes({
      first: setUp,
      each: inputNode(z.number(), () => undefined),
      last: () => undefined,
    });
    const byRoute = base.edges({
      [START]: "first",
      first: route(["last", END], (state) => {
        write(loosely(state));
        return END;
      }),
      last: fanOut("each", () => [1]),
      each: END,
    });
    const bySends = base.edges({
      [START]: "first",
      first: fanOut(
        "each",
        (state) => {
          write(loosely(state));
          return [1];
        },
        { otherwise: "last" },
      ),
      last: END,
      each: END,
    });
    for (const graph of [byRoute, bySends]) {
      const error = await getFailure(run(graph, { input: { any: 1 } }).result, "node_failed");
      expect(error.place.node).toBe("first");
      expect(error.cause).toBeInstanceOf(TypeError);
    }
  });

  test("a write to the frozen state of a returned result throws", async () => {
    const graph = defineGraph({ name: "write", state: S })
      .nodes({ first: setUp })
      .edges({ [START]: "first", first: END });
    const { state } = await run(graph, { input: { any: 1 } }).result;
    expect(() => write(loosely(state))).toThrow(TypeError);
  });
});

test("the input of a task and the current value of a reducer are frozen [E7]", async () => {
  const Sum = defineState({
    sum: channel.reduce(z.object({ n: z.number() }).default({ n: 0 }), (sum, by: number) =>
      Object.assign(sum as { n: number }, { n: sum.n + by }),
    ),
    log: channel.list(z.string()),
  });
  const reducing = defineGraph({ name: "reduce", state: Sum })
    .nodes({ a: () => ({ sum: 1 }) })
    .edges({ [START]: "a", a: END });
  expect((await getFailure(run(reducing, {}).result, "invalid_update")).place).toMatchObject({
    node: "a",
    channel: "sum",
  });
  const given = { tags: ["x"] };
  const sending = defineGraph({ name: "send", state: Sum })
    .nodes({
      each: inputNode(z.object({ tags: z.array(z.string()) }), (_state, { input }) => void input.tags.push("y")),
    })
    .edges({ [START]: fanOut("each", () => [given]), each: END });
  expect((await getFailure(run(sending, {}).result, "node_failed")).place.node).toBe("each");
  expect(given).toEqual({ tags: ["x"] });
});

test("a run works with its input as it was when run returned, and freezes no object of its caller [FX11]", async () => {
  const Any = defineState({
    any: z.any(),
    own: z.custom<{ n: number }>(),
    sum: channel.reduce(z.number().default(0), (sum, write: { n: number }) => sum + write.n),
    live: channel.untracked(z.any()),
  });
  const graph = defineGraph({ name: "snapshot", state: Any, interrupts: { go: z.any() } })
    .nodes({ ask: async (_state, { interrupt }) => ({ any: await interrupt("go") }) })
    .edges({ [START]: "ask", ask: END });
  for (const store of [memoryStore(), undefined]) {
    const given = {
      any: { list: [1], at: new Map([["a", { n: 1 }]]), bytes: new Uint8Array([1]) },
      own: { n: 1 },
      sum: 0,
      live: { n: 1 },
    };
    if (store === undefined) {
      const quick = defineGraph({ name: "quick", state: Any })
        .nodes({ a: () => undefined })
        .edges({ [START]: "a", a: END });
      const handle = run(quick, { input: given });
      given.any.list.push(2);
      expect((await handle.result).state).toMatchObject({ any: { list: [1] }, own: { n: 1 } });
      expect(Object.isFrozen(given.any) || Object.isFrozen(given.own) || Object.isFrozen(given.any.list)).toBe(false);
      continue;
    }
    const handles = ["a", "b", "c"].map((thread, n) => {
      given.any.list[0] = n;
      given.any.at.set("a", { n });
      given.any.bytes[0] = n;
      given.own.n = n;
      return run(graph, { store, thread, input: given });
    });
    given.live.n = 7;
    const states = await Promise.all(handles.map(async ({ result }) => (await result).state));
    expect(states).toMatchObject(
      [0, 1, 2].map((n) => ({
        any: { list: [n], at: new Map([["a", { n }]]), bytes: new Uint8Array([n]) },
        own: { n },
        live: { n: 7 },
      })),
    );
    expect([given, given.any, given.any.list, given.own].some((each) => Object.isFrozen(each))).toBe(false);
    given.any.at.set("a", { n: 9 });

    const answer = { n: [1] };
    const going = resume(graph, { store, thread: "a", answers: { go: answer } });
    answer.n.push(2);
    expect((await going.result).state.any).toEqual({ n: [1] });
    expect(Object.isFrozen(answer.n)).toBe(false);

    const write = { n: 1 };
    const updating = updateState(graph, { store, thread: "b", as: "ask", values: { sum: write } });
    write.n = 5;
    await updating;
    expect((await getState(graph, { store, thread: "b" })).state.sum).toBe(1);
    expect(Object.isFrozen(write)).toBe(false);
  }
});

test("mutating an event or the given input does not change the run [E7]", async () => {
  const store = memoryStore();
  const make = () =>
    defineGraph({ name: "leak", state: S, interrupts: { go: z.object({ ok: z.boolean() }) } })
      .nodes({
        a: setUp,
        b: async (_state, { interrupt }) => void (await interrupt("go", { payload: { n: 1 } })),
      })
      .edges({ [START]: "a", a: "b", b: END });
  const graph = make();
  const given = { user: { name: "cy", tags: ["c"] }, any: { inside: ["c"] }, chat: [message] };
  const handle = run(graph, { store, thread: "t", input: given });
  const damaged: string[] = [];
  const damage = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const key of Object.keys(value)) {
      damage(value[key as keyof typeof value], `${path}.${key}`);
      try {
        Reflect.deleteProperty(value, key) && damaged.push(`${path}.${key}`);
        Object.assign(value, { [key]: "damaged" });
      } catch {
        // A frozen value is also accepted.
      }
    }
  };
  handle.on((event) => damage(event, event.type));
  given.chat.push(message);
  const first = await handle.result;
  given.user.tags.push("d");
  damage(first, "result");
  expect(damaged.length).toBeGreaterThan(0);
  const going = resume(graph, { store, thread: "t", answers: { go: { ok: true } } });
  const events = collectEvents(going);
  const { state, status } = await going.result;
  expect(status).toBe("done");
  expect(JSON.stringify([...events, state, await store.interrupts("t", "main")])).not.toContain("damaged");
  const clean = await run(make(), {
    store: memoryStore(),
    thread: "t",
    input: { user: { name: "cy", tags: ["c"] }, any: { inside: ["c"] }, chat: [message] },
  }).result;
  expect(state).toEqual(clean.state);
});
