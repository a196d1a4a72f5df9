/** Values thrown from any place: the value is the cause, the message names the place, and no error is unhandled. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { fromErrorRecord, toErrorRecord } from "../../../src/base/errors.ts";
import {
  channel,
  defineState,
  defineTool,
  END,
  edit,
  fanOut,
  type Graph,
  inject,
  inputNode,
  isStatewrightError,
  memoryStore,
  type NodeRuntime,
  resume,
  route,
  run,
  START,
  toolNode,
} from "../../../src/index.ts";
import { plainCodec } from "../../../src/store.ts";
import { getFailure } from "../../support/failure.ts";
import { defineUntypedGraph, fromJavaScript, toUntyped } from "../../support/from-javascript.ts";
import { thrownThings } from "../../support/thrown-values.ts";
import { expectNothingUnhandled } from "../../support/unhandled-errors.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

expectNothingUnhandled();

type Throw = () => never;

const State = defineState({ n: z.number().default(0) });
const returnNothing = (): undefined => undefined;

function createGraph(body: unknown, edge: unknown = END, more: object = {}, state: unknown = State): Graph {
  const ends = Object.fromEntries(Object.keys(more).map((name) => [name, END]));
  const nodes = { first: () => ({ n: 1 }), bad: body, ...more };
  return defineUntypedGraph({ name: "g", state }, nodes, { [START]: "first", first: "bad", bad: edge, ...ends });
}

/** Runs a tool node with one call of the tool "pay". */
function tooled(tool: object, options: object = {}): Graph {
  const plain = { name: "pay", description: "Pays", input: z.object({}), effect: "pure", run: () => "paid" };
  const pay = toUntyped(defineTool)({ ...plain, ...tool });
  const call = { type: "call", id: "c1", name: "pay", args: {} } as const;
  const message = { role: "assistant", id: "a1", content: [call], finish: "calls" } as const;
  return defineUntypedGraph(
    { name: "g", state: defineState({ n: z.number().default(0), messages: channel.messages() }) },
    { first: () => ({ n: 1, messages: [message] }), bad: toUntyped(toolNode)({ tools: [pay], ...options }) },
    { [START]: "first", first: "bad", bad: END },
  );
}

const reply = { content: [{ type: "text", text: "hello" }], finish: "stop" };

/** Creates a node body that requests a model. */
function createAskingGraph(respond: unknown, middleware: object = {}): Graph {
  return createGraph(async (_: unknown, { model }: NodeRuntime) => {
    const request = { messages: [], tools: [] };
    await model(
      fromJavaScript({ model: { id: "m", respond }, request, middleware: [{ name: "audit", ...middleware }] }),
    );
    return { n: 2 };
  });
}

interface Place {
  readonly graph: (boom: Throw) => Graph;
  /** Expected place in the error message. */
  readonly says: string;
  readonly options?: (boom: Throw) => object;
}

const failing: Readonly<Record<string, Place>> = {
  "a body": { graph: (boom) => createGraph(boom), says: 'the node "bad"' },
  "an asynchronous body": { graph: (boom) => createGraph(async () => boom()), says: 'the node "bad"' },
  "a route": { graph: (boom) => createGraph(returnNothing, route([END], boom)), says: 'the route after "bad"' },
  sends: {
    graph: (boom) =>
      createGraph(returnNothing, fanOut("other", boom), { other: inputNode(z.unknown(), returnNothing) }),
    says: 'the fanOut after "bad"',
  },
  "a reducer": {
    graph: (boom) =>
      createGraph(
        () => ({ folded: 1 }),
        END,
        {},
        defineState({ n: z.number().default(0), folded: channel.reduce(z.number().default(0), (): number => boom()) }),
      ),
    says: 'the reducer of the channel "folded"',
  },
  "a recipe": { graph: (boom) => createGraph(() => edit(boom)), says: 'the recipe of the node "bad"' },
  "a step": {
    graph: (boom) => createGraph((_: unknown, { step }: NodeRuntime) => step("look", boom)),
    says: 'the node "bad"',
  },
  "a step that may run once": {
    graph: (boom) => createGraph((_: unknown, { step }: NodeRuntime) => step("look", boom, { effect: "once" })),
    says: 'the node "bad"',
  },
  "an error handler": {
    graph: (boom) =>
      createGraph({
        run: () => {
          throw new Error("the body threw");
        },
        onError: boom,
      }),
    says: 'the error handler of the node "bad"',
  },
  "the key of a cache": {
    graph: (boom) => createGraph({ run: () => ({ n: 2 }), cache: { key: boom } }),
    says: 'cache.key of the node "bad"',
  },
  "a retry's question": {
    graph: (boom) => createGraph({ run: boom, retry: { attempts: 2, on: boom } }),
    says: 'the node "bad"',
  },
  "an injection": {
    graph: (boom) => tooled({ inject: { account: { kind: "custom", resolve: boom } } }),
    says: 'the injection "account" of the tool "pay"',
  },
  "a source of secrets": {
    graph: () => tooled({ inject: { key: inject.secret("KEY") } }),
    options: (boom) => ({ secrets: { get: boom } }),
    says: 'the secret "KEY"',
  },
  "a hook before a tool": {
    graph: (boom) => tooled({}, { middleware: [{ name: "audit", required: true, beforeTool: boom }] }),
    says: 'beforeTool of the required middleware "audit"',
  },
  "a hook around a tool": {
    graph: (boom) => tooled({}, { middleware: [{ name: "audit", required: true, aroundTool: boom }] }),
    says: 'aroundTool of the required middleware "audit"',
  },
  "a hook after a tool": {
    graph: (boom) => tooled({}, { middleware: [{ name: "audit", required: true, afterTool: boom }] }),
    says: 'afterTool of the required middleware "audit"',
  },
  "a model, at once": { graph: (boom) => createAskingGraph(boom), says: 'the node "bad"' },
  "a model, later": { graph: (boom) => createAskingGraph(async () => boom()), says: 'the node "bad"' },
  "a model, in the middle of its stream": {
    graph: (boom) =>
      createAskingGraph(async (_: unknown, { delta }: { delta?: (part: object) => void }) => {
        delta?.({ type: "text", text: "he" });
        boom();
      }),
    says: 'the node "bad"',
  },
  "a hook before a model": {
    graph: (boom) => createAskingGraph(async () => reply, { beforeModel: boom }),
    says: 'beforeModel of the middleware "audit"',
  },
  "a hook around a model": {
    graph: (boom) => createAskingGraph(async () => reply, { aroundModel: boom }),
    says: 'aroundModel of the middleware "audit"',
  },
  "a hook after a model": {
    graph: (boom) => createAskingGraph(async () => reply, { afterModel: boom }),
    says: 'afterModel of the middleware "audit"',
  },
  "a schema": {
    graph: (boom) =>
      createGraph(
        () => ({ checked: "x" }),
        END,
        {},
        defineState({
          n: z.number().default(0),
          checked: z
            .string()
            .refine((text) => text === "" || boom())
            .default(""),
        }),
      ),
    says: 'the channel "checked"',
  },
};

async function end(graph: Graph, options: object, world: VirtualWorld): Promise<unknown> {
  const handle = toUntyped(run)(graph, { thread: "t", input: {}, world, ...options });
  handle.on(returnNothing);
  const result = handle.result.catch((error: unknown) => error);
  await world.advance(1_000);
  return result;
}

/** Returns whether the thrown value is the cause, directly or through nested causes. */
function carries(error: unknown, thrown: unknown): boolean {
  return isStatewrightError(error) && (Object.is(error.cause, thrown) || carries(error.cause, thrown));
}

describe.each(Object.entries(failing))("thrown values: %s throws", (_place, { graph, says, options }) => {
  test.each(Object.entries(thrownThings))(
    "a run fails with a clear error that carries the thrown value: %s",
    async (_name, make) => {
      for (const store of [memoryStore(), undefined]) {
        const thrown = make();
        const throwBoom: Throw = () => {
          throw thrown;
        };
        const built = graph(throwBoom);
        const given = { ...options?.(throwBoom), ...(store === undefined ? {} : { store }) };
        const error = await end(built, given, createVirtualWorld());
        if (!isStatewrightError(error)) throw new Error(`not one of ours: ${String(error)}`);
        expect(carries(error, thrown), error.message).toBe(true);
        expect(error.message).toContain(says);
        expect(error.message).toMatch(/\. [A-Z].+\. See node_modules\/statewright\/docs\/errors\.md#[a-z_]+\.$/s);
        expect(error.message.length).toBeLessThan(4_000);
        expect(error.place).toMatchObject({ graph: "g", thread: "t", node: "bad" });
        if (store === undefined) continue;
        const [row] = await store.runs({ thread: "t" });
        expect(row?.status).toBe("failed");
        // The saved record also keeps name, message, code and stack of the original in the chain of causes.
        const again = fromErrorRecord(JSON.parse(JSON.stringify(row?.error)));
        expect(again.message).toBe(error.message);
        if (thrown === undefined) expect(again.message).toContain("undefined");
        else
          expect(chain(again).map(({ name, message }) => ({ name, message }))).toContainEqual(nameAndMessage(thrown));
      }
    },
  );
});

test("a failed node succeeds in a resume after its fix, whatever value was thrown", async () => {
  for (const make of Object.values(thrownThings)) {
    const store = memoryStore();
    let isFixed = false;
    const graph = createGraph(() => {
      if (!isFixed) throw make();
      return { n: 2 };
    });
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    isFixed = true;
    expect(await resume(graph, { store, thread: "t" }).result).toMatchObject({ status: "done", state: { n: 2 } });
  }
});

test.each(Object.entries(thrownThings))(
  "a tool that throws %s gives the model an error answer, and the log has the complete value",
  async (_name, make) => {
    const world = createVirtualWorld();
    const thrown = make();
    const graph = tooled({
      run: () => {
        throw thrown;
      },
    });
    const result = fromJavaScript<{ status: string; state: { messages: readonly { content: unknown }[] } }>(
      await end(graph, { store: memoryStore() }, world),
    );
    expect(result.status).toBe("done");
    expect(result.state.messages.at(-1)).toMatchObject({ role: "tool", isError: true });
    expect(world.lines).toMatchObject([
      { message: 'the tool "pay" failed', fields: { error: nameAndMessage(thrown) } },
    ]);
  },
);

describe("throws that do not fail the run are logged", () => {
  const places: Readonly<Record<string, (boom: Throw) => readonly [Graph, object, string]>> = {
    "a cache that is read": (boom) => [
      createGraph({
        run: () => ({ n: 2 }),
        cache: { key: () => "k", store: { get: boom, put: returnNothing, delete: returnNothing } },
      }),
      {},
      'cache of the node "bad": read failed',
    ],
    "a cache that is written": (boom) => [
      createGraph({
        run: () => ({ n: 2 }),
        cache: { key: () => "k", store: { get: returnNothing, put: boom, delete: returnNothing } },
      }),
      {},
      'cache of the node "bad": write failed',
    ],
    "a hook that is not required": (boom) => [
      tooled({}, { middleware: [{ name: "audit", afterTool: boom }] }),
      {},
      'afterTool of the middleware "audit" failed',
    ],
  };
  test.each(
    Object.entries(places).flatMap(([place, make]) =>
      Object.entries(thrownThings).map(([name, thing]) => [place, name, make, thing] as const),
    ),
  )("a throw that must not fail the run is logged: %s, %s", async (_place, _name, make, thing) => {
    const world = createVirtualWorld();
    const [graph, options, said] = make(() => {
      throw thing();
    });
    expect(await end(graph, options, world)).toMatchObject({ status: "done" });
    expect(world.lines.map(({ message }) => message)).toContain(said);
  });

  test.each(Object.entries(thrownThings))(
    "an event reader that throws, sync or async, does not fail the run and is logged: %s",
    async (_name, thing) => {
      const world = createVirtualWorld();
      const handle = run(
        createGraph(() => ({ n: 2 })),
        { world },
      );
      handle.on(() => {
        throw thing();
      });
      handle.on(async () => {
        throw thing();
      });
      expect((await handle.result).status).toBe("done");
      await world.waitUntilIdle();
      expect(new Set(world.lines.map(({ message }) => message))).toEqual(new Set(["a reader of events threw"]));
    },
  );
});

test.each(Object.entries(thrownThings))(
  "a codec that throws %s fails the run with that error, and nothing of the step is saved",
  async (_name, make) => {
    const store = memoryStore();
    const thrown = make();
    const codec = {
      encode: (value: unknown, what: string): string => {
        if (value === 13) throw thrown;
        return plainCodec.encode(value, what);
      },
      decode: plainCodec.decode,
    };
    const graph = createGraph(() => ({ n: 13 }));
    const error = await getFailure(run(graph, { store, thread: "t", codec }).result, "unencodable_value");
    expect(carries(error, thrown)).toBe(true);
    expect((await store.head("t"))?.step).toBe(1);
  },
);

test("an AbortError thrown by user code is a failure and not a cancel", async () => {
  const graph = createGraph(() => {
    throw new DOMException("stopped by hand", "AbortError");
  });
  const error = await getFailure(run(graph, {}).result, "node_failed");
  expect(error.message).toContain("stopped by hand");
});

test("the errors inside an AggregateError are kept separately in its record", () => {
  const both = new AggregateError([Object.assign(new Error("one"), { code: "E1" }), "two"], "both");
  const again = fromErrorRecord(JSON.parse(JSON.stringify(toErrorRecord(both))));
  expect(again).toBeInstanceOf(AggregateError);
  expect(fromJavaScript<AggregateError>(again).errors).toMatchObject([
    { message: "one", code: "E1" },
    { name: "NotAnError", thrown: '"two"' },
  ]);
});

function chain(error: Error): readonly Error[] {
  return error.cause instanceof Error ? [error, ...chain(error.cause)] : [error];
}

/** Returns the text that the record has for the thrown value. */
function nameAndMessage(thrown: unknown): { readonly name: string; readonly message: string } {
  const { name, message } = toErrorRecord(thrown);
  return { name, message };
}
