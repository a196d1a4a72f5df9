/** Invalid values from user code: the error states fact, place and fix, and no data is lost. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  type ErrorCode,
  edit,
  fanOut,
  fork,
  type Graph,
  getState,
  goto,
  inputNode,
  isStatewrightError,
  type MemoryStore,
  memoryStore,
  type NodeRuntime,
  resume,
  route,
  run,
  START,
  type StatewrightError,
  send,
  toolNode,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { defineUntypedGraph, fromJavaScript, toUntyped } from "../../support/from-javascript.ts";
import { expectNothingUnhandled } from "../../support/unhandled-errors.ts";
import { createForeverThenable, garbage } from "../../support/untyped-values.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

expectNothingUnhandled();

const Any = defineState({
  any: z.unknown(),
  n: z.number().default(0),
  log: channel.list(z.unknown()),
  byKey: channel.record(z.unknown()),
  folded: channel.reduce(z.unknown(), (_current, write: unknown) => write),
  flash: channel.ephemeral(z.unknown()),
});
type Body = (state: { readonly n: number }, runtime: NodeRuntime) => unknown;

/** Returns the invalid value first, and the correct value after the fix. */
type ValueSource = () => unknown;

/** A place in a graph that takes a value from user code. */
interface Place {
  /** Graph whose node "bad", or a later part, uses the value of `give`. Its node "first" writes n: 1. */
  readonly graph: (give: ValueSource) => Graph;
  readonly good: unknown;
  /** Allowed error codes of the refusal. */
  readonly codes: readonly ErrorCode[];
  /** True for a place that accepts any data; other places refuse every invalid value except those in `takes`. */
  readonly data?: boolean;
  readonly takes?: readonly string[];
  /** Expected run status with a valid value. */
  readonly ends?: "waiting";
  /** Text that every refusal contains in addition to the graph name. */
  readonly says?: string;
}

/** Creates the graph START → first → bad → END. */
function createGraphAround(body: unknown, extra: object = {}): Graph {
  const nodes = { first: () => ({ n: 1 }), bad: body };
  return defineUntypedGraph({ name: "g", state: Any, ...extra }, nodes, { [START]: "first", first: "bad", bad: END });
}

/** Creates the graph START → first → bad (no writes) → `edge` → next, with the body `other`. */
function createGraphBefore(edge: unknown, other: unknown, body: unknown = () => undefined): Graph {
  const nodes = { first: () => ({ n: 1 }), bad: body, other };
  return defineUntypedGraph({ name: "g", state: Any }, nodes, {
    [START]: "first",
    first: "bad",
    bad: edge,
    other: END,
  });
}

const returnNothing = (): undefined => undefined;
const each = inputNode(z.unknown(), returnNothing);
const bad = (body: Body): { readonly run: Body; readonly timeoutMs: number } => ({ run: body, timeoutMs: 1_000 });

const places: Readonly<Record<string, Place>> = {
  "the return of a body": {
    graph: (give) => createGraphAround(bad(() => give())),
    good: { n: 2 },
    // Awaiting a proxy reads its `then`; a throw from there is an ordinary failure.
    codes: ["invalid_update", "unknown_channel", "node_failed"],
    takes: ["a symbol as a key"],
  },
  "a channel": {
    graph: (give) => createGraphAround(bad(() => ({ any: give(), n: 2 }))),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    says: '"any"',
    data: true,
  },
  "an item of a list": {
    graph: (give) => createGraphAround(bad(() => ({ log: [give()], n: 2 }))),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    says: '"log"',
    data: true,
  },
  "an entry of a record": {
    graph: (give) => createGraphAround(bad(() => ({ byKey: { key: give() }, n: 2 }))),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    says: '"byKey"',
    data: true,
  },
  "an ephemeral channel": {
    graph: (give) => createGraphAround(bad(() => ({ flash: give(), n: 2 }))),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    says: '"flash"',
    data: true,
  },
  "a write to a reducer": {
    graph: (give) => createGraphAround(bad(() => ({ folded: give(), n: 2 }))),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    data: true,
  },
  "an item of a list of returns": {
    graph: (give) => createGraphAround(bad(() => [{ n: 5 }, give()])),
    good: { n: 2 },
    codes: ["invalid_update", "unknown_channel"],
    takes: ["a symbol as a key"],
  },
  "the return of a task with siblings": {
    graph: (give) =>
      defineUntypedGraph(
        { name: "g", state: Any },
        { first: () => ({ n: 1 }), bad: () => ({ any: give() }), ok: () => ({ log: ["ok"] }) },
        { [START]: "first", first: ["bad", "ok"], bad: END, ok: END },
      ),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    data: true,
  },
  "the value that a recipe writes to its draft": {
    graph: (give) =>
      createGraphAround(
        bad(() =>
          edit((draft: { any?: unknown; n: number }) => {
            draft.any = give();
            draft.n = 2;
          }),
        ),
      ),
    good: 1,
    codes: ["unencodable_value", "invalid_update", "node_failed"],
    data: true,
  },
  "the return of a reducer": {
    graph: (give) =>
      createGraphAround(() => ({ folded: 1, n: 2 }), {
        state: defineState({
          n: z.number().default(0),
          folded: channel.reduce(z.unknown(), (_current: unknown, _write: number) => give()),
        }),
      }),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    says: '"folded"',
    data: true,
  },
  "the update of a goto": {
    graph: (give) => createGraphBefore(commandTargets("other"), returnNothing, () => goto("other", give())),
    good: { n: 2 },
    codes: ["invalid_update", "unknown_channel"],
    takes: ["a symbol as a key"],
  },
  "the target of a goto": {
    graph: (give) =>
      createGraphBefore(commandTargets("other"), returnNothing, () => goto(fromJavaScript<string>(give()))),
    good: "other",
    codes: ["dead_route", "invalid_update"],
  },
  "the input of a send": {
    graph: (give) => createGraphBefore(commandTargets("other"), each, () => send("other", give())),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    data: true,
  },
  "the selection of sends": {
    graph: (give) =>
      createGraphBefore(
        fanOut("other", () => fromJavaScript<unknown[]>(give())),
        each,
      ),
    good: [1],
    codes: ["invalid_update"],
    takes: ["a list", "a list with holes"],
  },
  "an item that sends select": {
    graph: (give) =>
      createGraphBefore(
        fanOut("other", () => [give()]),
        each,
      ),
    good: 1,
    codes: ["unencodable_value", "invalid_update"],
    data: true,
  },
  "the return of a route": {
    graph: (give) =>
      createGraphBefore(
        route(["other", END], () => fromJavaScript(give())),
        returnNothing,
      ),
    good: "other",
    codes: ["dead_route", "invalid_update"],
  },
  "the return of an error handler": {
    graph: (give) =>
      createGraphAround({
        timeoutMs: 1_000,
        run: () => {
          throw new Error("the body threw");
        },
        onError: () => give(),
      }),
    good: { n: 2 },
    codes: ["invalid_update", "unknown_channel", "node_failed"],
    takes: ["a symbol as a key"],
  },
  "a cache key": {
    graph: (give) => createGraphAround({ run: () => ({ n: 2 }), cache: { key: () => give() } }),
    good: "key",
    codes: ["invalid_option"],
    takes: ["a text", "a lone surrogate", "a huge text"],
  },
  "the result of a step": {
    graph: (give) => createGraphAround(bad(async (_, { step }) => ({ any: await step("look", give), n: 2 }))),
    good: 1,
    codes: ["unencodable_value", "node_failed"],
    data: true,
  },
  "the key of a step": {
    graph: (give) =>
      createGraphAround(bad(async (_, { step }) => ({ n: await step(fromJavaScript<string>(give()), () => 2) }))),
    good: "key",
    codes: ["invalid_option"],
    takes: ["a text", "a huge text"],
  },
  "the payload of a question": {
    graph: (give) =>
      createGraphAround(
        bad((_, { interrupt }) => interrupt("ask", fromJavaScript({ payload: give() }))),
        {
          interrupts: { ask: z.boolean() },
        },
      ),
    good: 1,
    codes: ["unencodable_value"],
    data: true,
    ends: "waiting",
  },
  "the key of a question": {
    graph: (give) =>
      createGraphAround(
        bad((_, { interrupt }) => interrupt(fromJavaScript<string>(give()))),
        { interrupts: { ask: z.boolean() } },
      ),
    good: "ask",
    codes: ["unknown_interrupt"],
    ends: "waiting",
  },
  "the payload of an event": {
    graph: (give) =>
      createGraphAround(
        bad((_, { emit }) => {
          emit("looked", fromJavaScript(give()));
          return { n: 2 };
        }),
      ),
    good: 1,
    codes: ["unencodable_value"],
    data: true,
  },
  "a line of progress": {
    graph: (give) =>
      createGraphAround(
        bad((_, { progress }) => {
          progress(fromJavaScript(give()));
          return { n: 2 };
        }),
      ),
    good: "half",
    codes: ["invalid_option"],
    takes: ["a text", "a lone surrogate", "a huge text"],
  },
  "the reply of a model": {
    graph: (give) =>
      createGraphAround(
        bad(async (_, { model }) => {
          const respond = async (): Promise<never> => fromJavaScript(give());
          return { any: await model({ model: { id: "m", respond }, request: { messages: [], tools: [] } }), n: 2 };
        }),
      ),
    good: { content: [{ type: "text", text: "hello" }], finish: "stop" },
    codes: ["model_failed", "node_failed"],
  },
};

/** Runs the graph of a place with this value and advances the clock until the run has ended. */
async function attempt(graph: Graph, store: MemoryStore | undefined): Promise<{ readonly status: string } | Error> {
  const world = createVirtualWorld();
  const handle = run(graph, { thread: "t", input: {}, world, ...(store === undefined ? {} : { store }) });
  handle.on(() => undefined);
  return ended(handle.result, world);
}

async function ended(
  result: Promise<{ readonly status: string }>,
  world: VirtualWorld,
): Promise<{ readonly status: string } | Error> {
  const end = result.catch((error: unknown) => fromJavaScript<Error>(error));
  await world.advance(1_000);
  return end;
}

/** Checks that the error states fact, place and fix. */
function expectClear(thrown: unknown, codes: readonly ErrorCode[], says: readonly string[]): StatewrightError {
  if (!isStatewrightError(thrown))
    throw thrown instanceof Error ? thrown : new Error(`nothing failed: ${String(thrown)}`);
  expect(codes, thrown.message).toContain(thrown.code);
  for (const said of says) expect(thrown.message).toContain(said);
  expect(thrown.message).toMatch(/\. [A-Z].+\. See node_modules\/statewright\/docs\/errors\.md#[a-z_]+\.$/s);
  expect(thrown.message).toContain(`node_modules/statewright/docs/errors.md#${thrown.code}`);
  expect(thrown.message.length).toBeLessThan(2_000);
  expect(thrown.message).not.toMatch(/Cannot read properties|call stack|\[object /);
  return thrown;
}

describe.each(Object.entries(places))(
  "%s as a bad value in a graph",
  (_place, { graph, good, codes, says, data, takes = [], ends = "done" }) => {
    test.each(Object.entries(garbage))(
      "a run that is given %s accepts it, or fails with a clear error and resumes after the fix",
      async (name, { make, expectation }) => {
        const fine = takes.includes(name) || (data === true && expectation === "accepted");
        for (const store of [memoryStore(), undefined]) {
          let give: ValueSource = make;
          const built = graph(() => give());
          const end = await attempt(built, store);
          if (fine && (store !== undefined || ends === "done")) {
            expect(end).toMatchObject({ status: ends });
            continue;
          }
          if (ends === "waiting" && store === undefined) {
            expectClear(end, ["missing_store", ...codes], ['"bad"']);
            continue;
          }
          const error = expectClear(end, codes, ['"bad"', ...(says === undefined ? [] : [says])]);
          expect(error.place).toMatchObject({ graph: "g", thread: "t", node: "bad" });
          if (store === undefined) continue;
          // No write was applied, the run is failed, and the run continues after the fix.
          expect(await store.runs({ thread: "t" })).toMatchObject([{ status: "failed", error: { code: error.code } }]);
          expect(await getState(built, { store, thread: "t" })).toMatchObject({ step: 1, state: { n: 1 } });
          give = () => good;
          const world = createVirtualWorld();
          expect(await ended(resume(built, { store, thread: "t", world }).result, world)).toMatchObject({
            status: ends,
          });
        }
      },
    );
  },
);

test.each([
  ["the return of a body", (give: ValueSource) => createGraphAround(bad(() => give()))],
  [
    "the result of a step",
    (give: ValueSource) => createGraphAround(bad(async (_, { step }) => ({ any: await step("look", give) }))),
  ],
])("%s that is a thenable which never settles ends with the timeout of the node", async (_place, graph) => {
  for (const store of [memoryStore(), undefined])
    expectClear(await attempt(graph(createForeverThenable), store), ["task_timeout"], ['"bad"', "timeoutMs"]);
});

test.each([
  ["an object", () => ({ n: 5 })],
  ["a function", () => () => 1],
  ["a symbol", () => Symbol("s")],
  ["an instance of a class", () => new URL("https://one.example")],
])("a recipe that changes nothing and returns %s is refused", async (_name, give) => {
  const error = await getFailure(
    run(
      createGraphAround(() => edit(() => fromJavaScript(give()))),
      {},
    ).result,
    "invalid_update",
  );
  expect(error.message).toContain("Change the draft");
});

test("a recipe may be an expression: the value of an assignment, a push or a splice is not used as state", async () => {
  const Doc = defineState({ n: z.number().default(0), tags: z.array(z.string()).default(["old"]) });
  for (const recipe of [
    (draft: { n: number }) => (draft.n = 2),
    (draft: { tags: string[] }) => draft.tags.push("new"),
    (draft: { tags: string[] }) => draft.tags.splice(0, 0),
    (draft: { tags: string[] }) => draft.tags.sort(),
  ]) {
    const graph = defineGraph({ name: "g", state: Doc })
      .nodes({ bad: () => edit(fromJavaScript<() => void>(recipe)) })
      .edges({ [START]: "bad", bad: END });
    expect((await run(graph, {}).result).status).toBe("done");
  }
});

test("values that the codec supports are equal after a save and a load", async () => {
  const values = { big: 10n, nan: Number.NaN, when: new Date(5), map: new Map([[1, "one"]]), lone: "\ud800" };
  const store = memoryStore();
  const graph = createGraphAround(() => ({ any: values }));
  await run(graph, { store, thread: "t" }).result;
  expect(fromJavaScript<{ any: unknown }>((await getState(graph, { store, thread: "t" })).state).any).toEqual(values);
});

test("own keys __proto__ and constructor are data and pollute no prototype", async () => {
  const graph = createGraphAround(() => ({ any: JSON.parse('{"__proto__":{"polluted":1}}') }));
  const { state } = await run(graph, {}).result;
  expect(Object.keys(fromJavaScript<{ any: object }>(state).any)).toEqual(["__proto__"]);
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
});

describe("values given by a caller", () => {
  const graph = createGraphAround(() => ({ n: 2 }));
  const wanting = createGraphAround(() => ({ n: 2 }), { context: defineContext({ user: z.string() }) });
  const refusals = Object.entries(garbage).filter(([, { expectation }]) => expectation === "refused");

  test.each(refusals)("%s as a channel of the input is refused before a write to the store", async (name, { make }) => {
    for (const store of [memoryStore(), undefined]) {
      const error = expectClear(
        await getFailure(
          toUntyped(run)(graph, { thread: "t", input: { any: make() }, ...(store && { store }) }).result,
        ),
        ["unencodable_value", "invalid_input"],
        ['the input of graph "g"'],
      );
      expect(error.place, name).toMatchObject({ graph: "g" });
      expect(await store?.thread("t")).toBeUndefined();
    }
  });

  test.each(Object.entries(garbage))(
    "%s as the input of a run is refused before a write to the store",
    async (name, { make }) => {
      // An object with symbol keys only names no channel.
      if (name === "a symbol as a key") return;
      const store = memoryStore();
      const error = await getFailure(toUntyped(run)(graph, { thread: "t", store, input: make() }).result);
      expectClear(error, ["invalid_input"], ['the input of graph "g"']);
      expect(await store.thread("t")).toBeUndefined();
    },
  );

  test.each(Object.entries(garbage))(
    "%s as the context of a run is refused before a write to the store",
    async (_name, { make }) => {
      const store = memoryStore();
      const error = await getFailure(toUntyped(run)(wanting, { thread: "t", store, context: make() }).result);
      expectClear(error, ["invalid_context"], ['the context of graph "g"']);
      expect(await store.thread("t")).toBeUndefined();
    },
  );

  test.each(refusals)("%s as the update of a fork is refused and creates no branch", async (name, { make }) => {
    const store = memoryStore();
    await run(graph, { store, thread: "t" }).result;
    const at = (await store.head("t"))?.id ?? 0;
    for (const given of name === "a symbol as a key" ? [{ any: make() }] : [make(), { any: make() }]) {
      const error = await getFailure(toUntyped(fork)(graph, { store, thread: "t", at, name: "other", update: given }));
      expectClear(error, ["invalid_update", "unknown_channel", "unencodable_value"], ["the update of"]);
      expect((await store.branches("t")).map((branch) => branch.name)).toEqual(["main"]);
    }
  });

  test.each(refusals)("%s as an answer is refused and the interrupt stays open", async (name, { make }) => {
    const asking = createGraphAround(
      bad(async (_, { interrupt }) => ({ any: await interrupt("ask"), n: 2 })),
      {
        interrupts: { ask: z.unknown() },
      },
    );
    const store = memoryStore();
    await run(asking, { store, thread: "t" }).result;
    for (const answers of name === "a symbol as a key" ? [{ ask: make() }] : [{ ask: make() }, make()]) {
      const error = await getFailure(toUntyped(resume)(asking, { store, thread: "t", answers }).result);
      expectClear(error, ["unencodable_value", "invalid_answer", "ambiguous_answer", "unknown_interrupt"], []);
      expect((await getState(asking, { store, thread: "t" })).interrupts).toHaveLength(1);
    }
    const end = await resume(asking, { store, thread: "t", answers: { ask: 1 } }).result;
    expect(end).toMatchObject({ status: "done", state: { n: 2, any: 1 } });
  });
});

test("answers given without keys are refused with the number of open interrupts, in the singular and in the plural", async () => {
  for (const [keys, said] of [
    [["a"], "1 interrupt is open"],
    [["a", "b"], "2 interrupts are open"],
  ] as const) {
    const graph = createGraphAround(
      (_: unknown, { interrupt }: NodeRuntime) => Promise.all(keys.map((key) => interrupt(key))),
      {
        interrupts: { a: z.boolean(), b: z.boolean() },
      },
    );
    const store = memoryStore();
    await run(graph, { store, thread: "t" }).result;
    const error = await getFailure(
      toUntyped(resume)(graph, { store, thread: "t", answers: [true] }).result,
      "ambiguous_answer",
    );
    expect(error.message).toContain(said);
  }
});

test.each([
  ["a list", (state: { tags: string[] }) => state.tags.push("x")],
  ["an object", (state: { tags: string[] }) => delete fromJavaScript<Record<string, unknown>>(state)["tags"]],
  ["a map", (state: { when: Map<string, number> }) => state.when.set("x", 1)],
])(
  "a write to %s of the state fails with an error that says the state is read-only and how to change it",
  async (_name, write) => {
    const Doc = defineState({
      tags: z.array(z.string()).default([]),
      when: z.map(z.string(), z.number()).default(new Map()),
    });
    const graph = defineGraph({ name: "g", state: Doc })
      .nodes({ bad: (state) => fromJavaScript<undefined>(write(fromJavaScript(state))) })
      .edges({ [START]: "bad", bad: END });
    const error = await getFailure(run(graph, {}).result, "node_failed");
    expect(error.message).toContain("State is read-only: return the change, or use edit((draft) => …)");
  },
);

test("two tasks of one node that write one channel are reported as two tasks of that node", async () => {
  const graph = defineGraph({ name: "g", state: defineState({ x: z.number().default(0) }) })
    .nodes({ w: inputNode(z.number(), (_state, { input }) => ({ x: input })) })
    .edges({ [START]: fanOut("w", () => [1, 2]), w: END });
  const error = await getFailure(run(graph, {}).result, "channel_conflict");
  expect(error.message).toContain('2 tasks of "w" wrote the channel "x"');
});

test.each([
  ["interrupt", (runtime: NodeRuntime) => runtime.interrupt("ask", fromJavaScript({ amount: 5 })), '"amount"'],
  ["step", (runtime: NodeRuntime) => runtime.step("pay", () => 1, fromJavaScript({ efect: "once" })), '"efect"'],
  ["step", (runtime: NodeRuntime) => runtime.step("pay", () => 1, fromJavaScript({ effect: "twice" })), '"twice"'],
  ["step", (runtime: NodeRuntime) => runtime.step("pay", fromJavaScript(7)), "7"],
  ["model", (runtime: NodeRuntime) => runtime.model(fromJavaScript({ model: "gpt", request: {} })), '"gpt"'],
])("an invalid option or argument of %s is refused with an error that names it", async (_name, call, said) => {
  const graph = createGraphAround((_: unknown, runtime: NodeRuntime) => call(runtime), {
    interrupts: { ask: z.boolean() },
  });
  const error = await getFailure(run(graph, { store: memoryStore(), thread: "t" }).result, "invalid_option");
  expect(error.message).toContain(said);
  expect(error.place).toMatchObject({ node: "bad" });
});

describe("values returned by a tool", () => {
  const call = { type: "call", id: "c1", name: "look", args: {} } as const;
  const asking = { role: "assistant", id: "a1", content: [call], finish: "calls" } as const;
  type Look = (args: unknown, runtime: { readonly update?: ((partial: never) => void) | undefined }) => unknown;

  /** Returns the text that the model reads after a call of a tool with this body. */
  async function getAnswer(look: Look, stored: boolean) {
    const tool = defineTool({
      name: "look",
      description: "Looks",
      input: z.object({}),
      effect: "pure",
      timeoutMs: 1_000,
      run: (args, runtime) => fromJavaScript(look(args, runtime)),
    });
    const Chat = defineState({ messages: channel.messages() });
    const graph = defineGraph({ name: "g", state: Chat })
      .nodes({ tools: toolNode({ tools: [tool] }) })
      .edges({ [START]: "tools", tools: END });
    const world = createVirtualWorld();
    const handle = run(graph, {
      input: { messages: [asking] },
      world,
      thread: "t",
      ...(stored ? { store: memoryStore() } : {}),
    });
    const updates: unknown[] = [];
    handle.on((event) => {
      if (event.type === "tool.update") updates.push(event.partial);
    });
    const { result } = handle;
    await world.advance(10_000);
    const answer = (await result).state.messages.at(-1);
    if (answer?.role !== "tool") throw new Error("the call has no answer");
    return { answer, text: JSON.stringify(answer.content), updates };
  }

  // The model reads JSON, which has no symbol keys.
  const refusals = Object.entries(garbage).filter(
    ([name, { expectation }]) => expectation === "refused" && name !== "a symbol as a key",
  );
  /** Values that exceed a limit, or that no code can inspect: the whole return is refused. */
  const unreadable = ["very deep nesting", "a revoked proxy"];

  describe.each(
    Object.entries({
      "its return": (given: unknown) => given,
      "its value": (given: unknown) => ({ content: "looked", value: given }),
      "its details": (given: unknown) => ({ content: "looked", details: given }),
    }),
  )("%s as data of a tool that cannot be saved", (place, hand) => {
    const refused =
      place === "its return"
        ? [...unreadable, "a function", "a class", "a symbol", "a map with a function in it", "a proxy that throws"]
        : unreadable;
    test.each(refusals)(
      "a tool that hands over %s has an answer, and the content stands [FX86]",
      async (name, { make }) => {
        for (const stored of [true, false]) {
          const { answer, text } = await getAnswer(() => hand(make()), stored);
          expect(answer.isError, `${name}: ${text}`).toBe(refused.includes(name));
          expect(text).toMatch(
            place === "its return" ? /json|tool|proxy/ : refused.includes(name) ? /tool|revoked/ : /looked/,
          );
          expect(text).not.toMatch(/call stack|Cannot read properties/);
        }
      },
    );
  });

  describe("a block of its content as a bad value in a tool", () => {
    test.each(refusals)("a tool that hands over %s gets a clear error answer", async (name, { make }) => {
      for (const stored of [true, false]) {
        const { answer, text } = await getAnswer(() => ({ content: [{ type: "json", value: make() }] }), stored);
        expect(answer.isError, `${name}: ${text}`).toBe(true);
        expect(text).toMatch(/[Tt]he tool|the proxy threw|revoked/);
        expect(text).not.toMatch(/call stack|Cannot read properties/);
      }
    });
  });

  test("a tool that returns a thenable which never settles ends with its timeout", async () => {
    for (const stored of [true, false])
      expect((await getAnswer(createForeverThenable, stored)).text).toContain("Timed out");
  });

  test.each(Object.entries(garbage))(
    "%s as a partial result of a tool does not harm the tool call",
    async (_name, { make }) => {
      const look: Look = (_args, { update: show }) => {
        show?.(fromJavaScript<never>(make()));
        return "looked";
      };
      expect((await getAnswer(look, true)).text).toContain("looked");
    },
  );

  test("text as a partial result is shown as content", async () => {
    const look: Look = (_args, { update: show }) => show?.(fromJavaScript<never>("half"));
    expect((await getAnswer(look, true)).updates).toEqual([{ content: "half" }]);
  });
});
