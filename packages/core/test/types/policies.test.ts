import { expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineContext,
  defineGraph,
  defineState,
  END,
  edit,
  fanOut,
  goto,
  inputNode,
  memoryStore,
  type NodeRuntime,
  resume,
  run,
  START,
  type StatewrightError,
  send,
} from "../../src/index.ts";
import { memoryCache } from "../../src/store.ts";

const Orders = defineState({ files: z.array(z.string()).default([]), log: channel.list(z.string()) });
const Shop = defineContext({ customer: z.string() });
const start = defineGraph({
  name: "policies",
  state: Orders,
  context: Shop,
  interrupts: { retry: z.boolean() },
  defaults: {
    retry: { attempts: 3 },
    timeoutMs: 1_000,
    idleTimeoutMs: 100,
    onError: (state, { error, input }) => {
      expectTypeOf(state.files).toEqualTypeOf<readonly string[]>();
      expectTypeOf(error).toEqualTypeOf<StatewrightError>();
      expectTypeOf(input).toBeUnknown();
      return { log: [error.code] };
    },
  },
});

function policies() {
  const graph = start
    .nodes({
      a: {
        run: async (state, { heartbeat, context }) => {
          expectTypeOf(state.files).toEqualTypeOf<readonly string[]>();
          expectTypeOf(context.customer).toEqualTypeOf<string>();
          heartbeat();
          return { files: [...state.files] };
        },
        idleTimeoutMs: 50,
        cache: { key: (state) => state.files.join(), ttlMs: 1_000, store: memoryCache() },
        onError: async (state, { error, input, context, interrupt, signal }) => {
          expectTypeOf(state.log).toEqualTypeOf<readonly string[]>();
          expectTypeOf(error).toEqualTypeOf<StatewrightError>();
          expectTypeOf(input).toBeUnknown();
          expectTypeOf(context.customer).toEqualTypeOf<string>();
          expectTypeOf(await interrupt("retry")).toEqualTypeOf<boolean>();
          expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
          return signal.aborted ? send("each", { file: "x" }) : goto("b", { log: [error.message] });
        },
      },
      b: { run: () => ({ log: ["b"] }), effect: "once", defer: true },
      c: { run: () => undefined, onError: () => edit((draft) => void draft.files.push("c")) },
      each: inputNode(z.object({ file: z.string() }), (_state, { input }) => ({ log: [input.file] }), {
        retry: { attempts: 2 },
        cache: { key: (_state, input) => input.file },
        onError: (_state, { input, error }) => {
          expectTypeOf(input).toEqualTypeOf<{ file: string }>();
          return { log: [`${input.file}: ${error.message}`] };
        },
      }),
      away: inputNode(z.string(), () => undefined, { onError: (_state, { input }) => goto("b", { log: [input] }) }),
    })
    .edges({
      [START]: "a",
      a: commandTargets("b", "each"),
      b: END,
      c: fanOut("each", (state) => state.files.map((file) => ({ file }))),
      each: "b",
      away: commandTargets("b"),
    });
  run(graph, { context: { customer: "x" }, store: memoryStore(), breakpoints: { before: ["a"], after: ["each"] } });
  resume(graph, { context: { customer: "x" }, store: memoryStore(), thread: "t", breakpoints: {} });
  run(graph, { context: { customer: "x" }, onTaskFailure: "abort" });
  return graph;
}

function wrongPolicies() {
  // @ts-expect-error an error handler returns a channel that the state does not have
  start.nodes({ a: { run: () => undefined, onError: () => ({ lgo: [] }) } });
  // @ts-expect-error an error handler returns a wrong value
  start.nodes({ a: { run: () => undefined, onError: () => ({ log: 3 }) } });
  start.nodes({
    a: {
      run: () => undefined,
      onError: (state) => {
        // @ts-expect-error an error handler writes to its state
        state.files.push("x");
      },
    },
  });
  start.nodes({
    a: {
      run: () => undefined,
      // @ts-expect-error an error handler asks what the graph does not declare
      onError: async (_state, { interrupt }) => void (await interrupt("who")),
    },
  });
  const handled = start.nodes({ a: { run: () => undefined, onError: () => goto("b") }, b: () => undefined });
  // @ts-expect-error an error handler's goto without gotos
  handled.edges({ [START]: "a", a: "b", b: END });
  // @ts-expect-error an error handler's goto that the edge does not list
  handled.edges({ [START]: "a", a: commandTargets("a"), b: END });
  const each = inputNode(z.number(), () => undefined, { onError: () => goto("b") });
  const sent = start.nodes({ a: () => undefined, each, b: () => undefined });
  // @ts-expect-error the goto of a task's error handler without gotos
  sent.edges({ [START]: "a", a: fanOut("each", () => [1]), each: "b", b: END });
  // @ts-expect-error a key that is not a text
  start.nodes({ a: { run: () => undefined, cache: { key: (state) => state.files } } });
  // @ts-expect-error an unknown channel in a key
  start.nodes({ a: { run: () => undefined, cache: { key: (state) => state.flies.join() } } });
  // @ts-expect-error an unknown effect class
  start.nodes({ a: { run: () => undefined, effect: "twice" } });
  defineGraph({
    name: "wrong",
    state: Orders,
    // @ts-expect-error the handler for all nodes cannot decide where control goes
    defaults: { onError: () => goto("b") },
  });
  // @ts-expect-error a graph has no default cache: what a key means is up to each node
  defineGraph({ name: "wrong", state: Orders, defaults: { cache: { key: () => "k" } } });
  const graph = policies();
  const context = { customer: "x" };
  // @ts-expect-error a breakpoint at a node that is not there
  run(graph, { context, store: memoryStore(), breakpoints: { before: ["z"] } });
  // @ts-expect-error neither of the two
  run(graph, { context, onTaskFailure: "ignore" });
}

test("node policies infer state, runtime, input and failure, and invalid policies do not compile (types)", () => {
  expectTypeOf(policies).toBeFunction();
  expectTypeOf(wrongPolicies).toBeFunction();
  expectTypeOf<NodeRuntime["heartbeat"]>().toEqualTypeOf<() => void>();
});
