/** Invalid definitions from untyped code: each is refused at its definition with one clear error. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  type ErrorCode,
  env,
  fanOut,
  fork,
  type GraphProblem,
  getHistory,
  getState,
  inject,
  inputNode,
  memoryStore,
  resume,
  route,
  run,
  START,
  type StatewrightError,
  toolNode,
  toolRegistry,
} from "../../../src/index.ts";
import { memoryCache } from "../../../src/store.ts";
import { getFailure } from "../../support/failure.ts";
import { defineUntypedGraph, fromJavaScript, toUntyped } from "../../support/from-javascript.ts";

const State = defineState({ n: z.number().default(0) });
const returnNothing = (): undefined => undefined;

/** Invalid definition, its error code and the expected message parts. */
type InvalidDefinition = readonly [name: string, define: () => unknown, code: ErrorCode, ...says: string[]];

/** Checks that there is one error with code, place and fix, and without internal names. */
function expectClear(error: StatewrightError, says: readonly string[]): void {
  for (const said of says) expect(error.message).toContain(said);
  expect(error.message).toMatch(/\. [A-Z].+\. See node_modules\/statewright\/docs\/errors\.md#[a-z_]+\.$/s);
  expect(error.message).not.toMatch(/Cannot read|is not a function|not iterable|\[object /);
}

function expectRefusals(wrongs: readonly InvalidDefinition[]): void {
  for (const [name, define, code, ...says] of wrongs)
    test(name, async () => expectClear(await getFailure(async () => define(), code), says));
}

function graphWith(options: object) {
  return toUntyped(defineGraph)({ name: "g", state: State, ...options });
}

describe("invalid graph", () => {
  expectRefusals([
    ["no options at all", () => toUntyped(defineGraph)(undefined), "invalid_option", "defineGraph"],
    ["a text for options", () => toUntyped(defineGraph)("g"), "invalid_option", "defineGraph", '"g"'],
    ["an unknown option", () => graphWith({ interupts: {} }), "invalid_option", '"interupts"', "interrupts"],
    ["a number for its name", () => graphWith({ name: 7 }), "invalid_id", "must be an id, got 7"],
    ["a bigint for its name", () => graphWith({ name: 7n }), "invalid_id", "7"],
    ["a text for its version", () => graphWith({ version: "1" }), "invalid_option", '"1"'],
    ["a version that is not a number", () => graphWith({ version: Number.NaN }), "invalid_option", "NaN"],
    ["no state", () => graphWith({ state: undefined }), "invalid_state", '"g"', "defineState"],
    ["a zod object for its state", () => graphWith({ state: z.object({}) }), "invalid_state", "defineState"],
    ["a text for its state", () => graphWith({ state: "state" }), "invalid_state", '"state"'],
    ["a zod object for its context", () => graphWith({ context: z.object({}) }), "invalid_option", "defineContext"],
    ["a list for its interrupts", () => graphWith({ interrupts: [z.boolean()] }), "invalid_option", "interrupts"],
    [
      "an interrupt that is not a schema",
      () => graphWith({ interrupts: { ask: "yes" } }),
      "invalid_option",
      '"ask"',
      '"yes"',
    ],
    [
      "an interrupt with an unknown option",
      () => graphWith({ interrupts: { ask: { answer: z.boolean(), paylod: z.string() } } }),
      "invalid_option",
      '"ask"',
      '"paylod"',
    ],
    [
      "an interrupt that expires at once",
      () => graphWith({ interrupts: { ask: { answer: z.boolean(), expiresMs: 0 } } }),
      "invalid_option",
      '"ask"',
      "expiresMs",
    ],
    [
      "an interrupt that expires never, in numbers",
      () => graphWith({ interrupts: { ask: { answer: z.boolean(), expiresMs: Number.POSITIVE_INFINITY } } }),
      "invalid_option",
      "Infinity",
    ],
    [
      "an interrupt with onExpire and without an expiry",
      () => graphWith({ interrupts: { ask: { answer: z.boolean(), onExpire: true } } }),
      "invalid_option",
      "onExpire",
      "expiresMs",
    ],
    [
      "an interrupt with an onExpire that does not match its schema",
      () => graphWith({ interrupts: { ask: { answer: z.boolean(), expiresMs: 5, onExpire: "yes" } } }),
      "invalid_option",
      '"ask"',
      "expected boolean",
    ],
    ["an unknown default", () => graphWith({ defaults: { timeout: 5 } }), "invalid_option", '"timeout"'],
    [
      "an error handler that is not a function",
      () => graphWith({ defaults: { onError: 1 } }),
      "invalid_option",
      "onError",
    ],
    ["nodes that are a list", () => toUntyped(graphWith({}).nodes)([returnNothing]), "invalid_graph", "a list"],
    ["undefined nodes", () => toUntyped(graphWith({}).nodes)(), "invalid_graph", "undefined"],
  ]);
});

describe("invalid state", () => {
  expectRefusals([
    ["a text", () => toUntyped(defineState)("state"), "invalid_state", '"state"'],
    ["nothing", () => toUntyped(defineState)(undefined), "invalid_state", "undefined"],
    ["a channel that is a text", () => toUntyped(defineState)({ a: "string" }), "invalid_state", '"a"', '"string"'],
    ["a channel that is undefined", () => toUntyped(defineState)({ a: undefined }), "invalid_state", '"a"'],
    [
      "a channel that is a promise",
      () => toUntyped(defineState)({ a: Promise.resolve(1) }),
      "invalid_state",
      "a promise",
    ],
    [
      "a list of a value that is not a schema",
      () => toUntyped(channel.list)("string"),
      "invalid_state",
      "list",
      '"string"',
    ],
    ["a record of a value that is not a schema", () => toUntyped(channel.record)(7), "invalid_state", "record", "7"],
    ["a reducer that is not a function", () => toUntyped(channel.reduce)(z.number(), "sum"), "invalid_state", '"sum"'],
    [
      "a context value that is not a schema",
      () => toUntyped(defineContext)({ user: "string" }),
      "invalid_option",
      "`user`",
    ],
  ]);
});

const policies = (
  [
    ["an unknown effect", { effect: "twice" }, '"twice"'],
    ["a retry that is a number", { retry: 3 }, "3"],
    ["a retry without attempts", { retry: {} }, "retry"],
    ["a retry with an unknown option", { retry: { attempts: 2, backoff: 5 } }, '"backoff"'],
    ["a retry with a text for a number", { retry: { attempts: 2, initialMs: "5" } }, "retry"],
    ["a retry with a time that is not a number", { retry: { attempts: 2, maxMs: Number.NaN } }, "retry"],
    ["a time limit that is a text", { timeoutMs: "100" }, '"100"'],
    ["a time limit below 0", { timeoutMs: -1 }, "-1"],
    ["a time limit that is not a number", { idleTimeoutMs: Number.NaN }, "NaN"],
    ["a deferral that is a text", { defer: "yes" }, '"yes"'],
    ["a cache that is true", { cache: true }, "true"],
    ["a cache with a text as key", { cache: { key: "k" } }, '"k"'],
    ["a cache with an unknown option", { cache: { key: () => "k", ttl: 5 } }, '"ttl"'],
    ["a cache with a time below 0", { cache: { key: () => "k", ttlMs: -5 } }, "-5"],
    ["a cache with a map as store", { cache: { key: () => "k", store: new Map([["get", 1]]) } }, "memoryCache"],
    ["an error handler that is a text", { onError: "retry" }, '"retry"'],
  ] as const
).map(
  ([name, policy, said]): InvalidDefinition => [
    name,
    () => toUntyped(graphWith({}).nodes)({ a: { run: returnNothing, ...policy } }),
    "invalid_option",
    '"a"',
    said,
  ],
);

describe("invalid node policy", () => {
  expectRefusals(policies);
  expectRefusals([
    [
      "an unknown option of an input node",
      () => toUntyped(inputNode)(z.string(), returnNothing, { retries: 3 }),
      "invalid_option",
      '"retries"',
    ],
    ["an option of a route", () => toUntyped(route)(["a"], () => "a", { multi: true }), "invalid_option", '"multi"'],
    ["an option of sends", () => toUntyped(fanOut)("a", () => [], { otherwize: "b" }), "invalid_option", '"otherwize"'],
    ["the number of entries of a cache", () => toUntyped(memoryCache)({ maxEntries: "5" }), "invalid_option", '"5"'],
    ["an option of a cache", () => toUntyped(memoryCache)({ max: 5 }), "invalid_option", '"max"'],
  ]);
});

/** Returns all problems that compile reports for a graph of these nodes and edges. */
async function listProblems(nodes: object, edges: object): Promise<readonly string[]> {
  const error = await getFailure(() => defineUntypedGraph({ name: "g", state: State }, nodes, edges), "invalid_graph");
  const problems = fromJavaScript<readonly GraphProblem[]>(error.details);
  for (const { message, hint } of problems) {
    expect(error.message).toContain(message);
    expect(error.message).toContain(hint);
  }
  expectClear(error, []);
  return problems.map(({ code, node }) => `${code} ${node}`).toSorted();
}

class EdgeLike {
  readonly target = "a";
}

test("invalid nodes and edges are reported together with the other problems of the graph", async () => {
  const problems = await listProblems(
    {
      number: 7,
      missing: undefined,
      empty: null,
      text: "body",
      list: [returnNothing],
      promise: Promise.resolve(returnNothing),
      instance: new EdgeLike(),
      bodiless: { timeoutMs: 5 },
      misspelt: { run: returnNothing, timeout: 5 },
      handmade: { kind: "tools", tools: [] },
      inputless: { kind: "input", run: returnNothing, input: "string" },
      other: { kind: "loop", run: returnNothing },
      sound: returnNothing,
    },
    {
      [START]: [
        "number",
        "missing",
        "empty",
        "text",
        "list",
        "promise",
        "instance",
        "bodiless",
        "misspelt",
        "handmade",
        "other",
        "sound",
      ],
      number: END,
      missing: END,
      empty: END,
      text: END,
      list: END,
      promise: END,
      instance: END,
      bodiless: END,
      misspelt: END,
      handmade: END,
      inputless: END,
      other: END,
      sound: toUntyped(fanOut)("inputless", () => [1]),
    },
  );
  expect(problems).toEqual([
    "not_a_node bodiless",
    "not_a_node empty",
    "not_a_node handmade",
    "not_a_node inputless",
    "not_a_node instance",
    "not_a_node list",
    "not_a_node missing",
    "not_a_node number",
    "not_a_node other",
    "not_a_node promise",
    "not_a_node text",
    "unknown_option misspelt",
  ]);
});

test("a graph as a node is refused once, with a call of subgraph as the fix", async () => {
  const inner = defineUntypedGraph({ name: "inner", state: State }, { a: returnNothing }, { [START]: "a", a: END });
  const error = await getFailure(
    () => defineUntypedGraph({ name: "g", state: State }, { each: inner }, { [START]: "each", each: END }),
    "invalid_graph",
  );
  expect(error.message).toContain('the node "each" is the graph "inner" (pass subgraph(graph, { input, output }))');
  expect(error.details).toHaveLength(1);
});

test("invalid edges are reported together, and no node is reported as unreachable because of them", async () => {
  const edges: Readonly<Record<string, unknown>> = {
    number: 7,
    missing: undefined,
    empty: null,
    promise: Promise.resolve("number"),
    instance: new EdgeLike(),
    mixed: ["number", 7],
    object: { target: "number" },
    chooser: { kind: "route", targets: ["number"], choose: "number", many: false },
    targets: { kind: "route", targets: "number", choose: returnNothing, many: false },
    select: { kind: "fanOut", target: "each", select: 7 },
    joined: { kind: "join", target: 7 },
    going: { kind: "commandTargets", targets: [7] },
  };
  const bodies = Object.fromEntries(Object.keys(edges).map((name) => [name, returnNothing]));
  const problems = await listProblems(
    { ...bodies, each: inputNode(z.number(), returnNothing) },
    { [START]: Object.keys(edges), each: END, ...edges },
  );
  expect(problems).toEqual(
    Object.keys(edges)
      .map((name) => `not_an_edge ${name}`)
      .toSorted(),
  );
});

test("edges that are not an object are refused", async () => {
  for (const edges of [undefined, "a", [START, "a"], new EdgeLike()]) {
    const graph = defineGraph({ name: "g", state: State }).nodes({ a: returnNothing });
    expectClear(await getFailure(() => toUntyped(graph.edges)(edges), "invalid_graph"), ['"g"', "edges"]);
  }
});

const sound = { name: "pay", description: "Pays", input: z.object({}), run: () => "paid" };
const pay = defineTool(sound);

function toolWith(parts: object): unknown {
  return toUntyped(defineTool)({ ...sound, ...parts });
}

describe("invalid tool", () => {
  expectRefusals([
    ["nothing", () => toUntyped(defineTool)(undefined), "invalid_tool", "defineTool"],
    ["no run", () => toolWith({ run: undefined }), "invalid_tool", '"pay"', "run"],
    ["a text for its run", () => toolWith({ run: "pay" }), "invalid_tool", '"pay"'],
    ["an unknown option", () => toolWith({ handler: returnNothing }), "invalid_tool", '"handler"'],
    ["a number for its name", () => toolWith({ name: 7 }), "invalid_tool", "7"],
    ["a bigint for its name", () => toolWith({ name: 7n }), "invalid_tool", "7"],
    ["no description", () => toolWith({ description: undefined }), "invalid_tool", '"pay"', "description"],
    ["a number for its label", () => toolWith({ label: 7 }), "invalid_tool", "label"],
    ["an unknown effect", () => toolWith({ effect: "twice" }), "invalid_tool", '"twice"'],
    ["no input", () => toolWith({ input: undefined }), "invalid_tool", "input"],
    ["a text for its input", () => toolWith({ input: "string" }), "invalid_tool", "input"],
    ["a JSON Schema instead of zod", () => toolWith({ input: { type: "object" } }), "invalid_tool", '"pay"'],
    ["an output that is not a schema", () => toolWith({ output: "string" }), "invalid_tool", "output"],
    ["injections that are a list", () => toolWith({ inject: ["key"] }), "invalid_tool", "inject"],
    ["an injection that is a text", () => toolWith({ inject: { key: "KEY" } }), "invalid_tool", '"key"'],
    ["an unknown safety property", () => toolWith({ safety: { acess: "write" } }), "invalid_tool", '"acess"'],
    ["an unknown access", () => toolWith({ safety: { access: "readonly" } }), "invalid_tool", '"readonly"'],
    ["an unknown confirmation", () => toolWith({ safety: { confirm: "allways" } }), "invalid_tool", '"allways"'],
    ["a file system that is a flag", () => toolWith({ safety: { filesystem: true } }), "invalid_tool", "filesystem"],
    ["one host instead of a list", () => toolWith({ safety: { network: "a.example" } }), "invalid_tool", "network"],
    ["a text for a process", () => toolWith({ safety: { process: "no" } }), "invalid_tool", "process"],
    ["a price without its unit", () => toolWith({ safety: { spend: 5 } }), "invalid_tool", "spend"],
    ["one folder instead of a list", () => toolWith({ safety: { roots: "src" } }), "invalid_tool", "roots"],
    ["an unknown mode", () => toolWith({ execution: { mode: "serial" } }), "invalid_tool", '"serial"'],
    ["a name instead of a lock", () => toolWith({ execution: { lock: "file" } }), "invalid_tool", "lock"],
    ["an unknown steering mode", () => toolWith({ execution: { onSteer: "ignore" } }), "invalid_tool", '"ignore"'],
    [
      "a retry on an unknown failure",
      () => toolWith({ effect: "pure", retry: { attempts: 2, on: ["unavailible"] } }),
      "invalid_tool",
      "retry.on",
    ],
    ["an unknown execution", () => toolWith({ execution: { locks: [] } }), "invalid_tool", '"locks"'],
    ["a time limit that is a text", () => toolWith({ timeoutMs: "5" }), "invalid_tool", '"pay"'],
    ["a time limit that is not a number", () => toolWith({ timeoutMs: Number.NaN }), "invalid_tool", '"pay"'],
    ["a retry that is a number", () => toolWith({ effect: "pure", retry: 3 }), "invalid_option", '"pay"'],
    ["a question to the other side that is a text", () => toolWith({ reconcile: "ask" }), "invalid_tool", "reconcile"],
    ["a secret without a name", () => toUntyped(inject.secret)(undefined), "invalid_option", "secret"],
    ["one name instead of a list", () => toUntyped(env)("PAY_KEY"), "invalid_option", "env"],
  ]);

  test("a secret passed in place of a name is not shown in the error", async () => {
    const error = await getFailure(() => toUntyped(env)("sk-12345"), "invalid_option");
    expect(error.message).not.toContain("sk-12345");
  });
});

describe("invalid tool node", () => {
  const node = (options: unknown): unknown => toUntyped(toolNode)(options);
  expectRefusals([
    ["no options", () => node(undefined), "invalid_option", "toolNode"],
    ["an unknown option", () => node({ tools: [pay], parallel: true }), "invalid_option", '"parallel"'],
    ["no tools", () => node({}), "invalid_tool", "undefined"],
    ["one tool instead of a list", () => node({ tools: pay }), "invalid_tool", "expected a list, got an object"],
    ["a text among the tools", () => node({ tools: ["pay"] }), "invalid_tool", '"pay"'],
    ["a definition among the tools", () => node({ tools: [sound] }), "invalid_tool", "defineTool"],
    ["undefined among the tools", () => node({ tools: [undefined] }), "invalid_tool", "undefined"],
    ["two tools of one name", () => node({ tools: [pay, pay] }), "invalid_tool", "two tools", '"pay"'],
    ["an unknown strategy", () => node({ tools: [pay], strategy: "fast" }), "invalid_option", '"fast"'],
    ["a batch size of zero", () => node({ tools: [pay], strategy: { batch: 0 } }), "invalid_option", "0"],
    ["a limit that is a text", () => node({ tools: [pay], maxConcurrency: "5" }), "invalid_option", '"5"'],
    ["a limit that is not a number", () => node({ tools: [pay], maxConcurrency: Number.NaN }), "invalid_option", "NaN"],
    ["a limit below 0", () => node({ tools: [pay], maxConcurrency: -1 }), "invalid_option", "-1"],
    ["an unknown onInvalidCall", () => node({ tools: [pay], onInvalidCall: "ignore" }), "invalid_option", '"ignore"'],
    [
      "middleware that is not a list",
      () => node({ tools: [pay], middleware: {} }),
      "invalid_option",
      "expected a list of middleware, got an object",
    ],
    ["middleware without a name", () => node({ tools: [pay], middleware: [{}] }), "invalid_option", "without a name"],
    ["a text among the middleware", () => node({ tools: [pay], middleware: ["audit"] }), "invalid_option", '"audit"'],
    [
      "an unknown hook",
      () => toUntyped(defineMiddleware)({ name: "audit", beforeTools: returnNothing }),
      "invalid_option",
      '"audit"',
      '"beforeTools"',
    ],
    [
      "a hook that is a text",
      () => toUntyped(defineMiddleware)({ name: "audit", afterTool: "log" }),
      "invalid_option",
      "afterTool",
      '"log"',
    ],
    ["a registry of a value that is not a list", () => toUntyped(toolRegistry)("pay"), "invalid_tool", '"pay"'],
    ["a replacement that is not a tool", () => toUntyped(toolRegistry().replace)(7), "invalid_tool", "7"],
  ]);

  test("class instances with their own fields are accepted as tools and middleware", () => {
    class Audit {
      readonly name = "audit";
      readonly count = 0;
      afterTool(): undefined {
        return undefined;
      }
    }
    class Pay {
      readonly calls = 0;
      readonly spec = pay.spec;
      call(): string {
        return "paid";
      }
    }
    expect(toolNode({ tools: [new Pay()], middleware: [new Audit()] }).registry.names()).toEqual(["pay"]);
  });
});

const graph = defineGraph({ name: "g", state: State, interrupts: { ask: z.boolean() } })
  .nodes({ a: () => ({ n: 1 }) })
  .edges({ [START]: "a", a: END });

function runUntyped(options: unknown, of: unknown = graph): Promise<unknown> {
  return toUntyped(run)(of, options).result;
}

function resumed(options: object): Promise<unknown> {
  return toUntyped(resume)(graph, { thread: "t", store: memoryStore(), ...options }).result;
}

describe("invalid run", () => {
  expectRefusals([
    ["no options", () => runUntyped(undefined), "invalid_option", "run"],
    ["a text for a graph", () => runUntyped({}, "g"), "invalid_option", "run", '"g"'],
    [
      "a graph without its edges",
      () => runUntyped({}, defineGraph({ name: "g", state: State }).nodes({ a: returnNothing })),
      "invalid_option",
      "run: expected a graph, got an object",
    ],
    ["an unknown option", () => runUntyped({ imput: {} }), "invalid_option", '"imput"', "input"],
    ["answers, which are for resume", () => runUntyped({ answers: {} }), "invalid_option", '"answers"'],
    ["a number for its thread", () => runUntyped({ thread: 7 }), "invalid_id", "7"],
    ["a path for its store", () => runUntyped({ store: "agent.db" }), "invalid_option", '"agent.db"', "sqliteStore"],
    ["an object for its secrets", () => runUntyped({ secrets: { KEY: "sk-1" } }), "invalid_option", "secrets", "env"],
    ["a list for its secrets", () => runUntyped({ secrets: ["KEY"] }), "invalid_option", "secrets"],
    ["a text for its world", () => runUntyped({ world: "virtual" }), "invalid_option", "world"],
    ["a text for its codec", () => runUntyped({ codec: "json" }), "invalid_option", "codec"],
    ["a controller for its signal", () => runUntyped({ signal: new AbortController() }), "invalid_option", "signal"],
    [
      "a list for its breakpoints",
      () => runUntyped({ store: memoryStore(), breakpoints: ["a"] }),
      "invalid_option",
      "breakpoints",
    ],
    [
      "a text for its breakpoints",
      () => runUntyped({ store: memoryStore(), breakpoints: { before: "a" } }),
      "invalid_option",
      "before",
    ],
    [
      "a misspelt side of its breakpoints",
      () => runUntyped({ breakpoints: { befor: ["a"] } }),
      "invalid_option",
      '"befor"',
    ],
    ["a limit that is a text", () => runUntyped({ maxSteps: "5" }), "invalid_option", "maxSteps", '"5"'],
    ["a limit below 0", () => runUntyped({ maxSteps: -5 }), "invalid_option", "-5"],
    ["a limit that is not a number", () => runUntyped({ maxConcurrency: Number.NaN }), "invalid_option", "NaN"],
    ["a list for its input", () => runUntyped({ input: [1] }), "invalid_input", '"g"'],
    ["null for its input", () => runUntyped({ input: null }), "invalid_input", '"g"'],
  ]);

  test("an invalid secrets option is not shown in the error", async () => {
    for (const secrets of [{ KEY: "sk-12345" }, "sk-12345", ["sk-12345"]])
      expect((await getFailure(async () => runUntyped({ secrets }), "invalid_option")).message).not.toContain(
        "sk-12345",
      );
  });
});

describe("invalid resume and inspection calls", () => {
  const store = memoryStore();
  expectRefusals([
    ["an unknown option", () => resumed({ answer: {} }), "invalid_option", '"answer"', "answers"],
    ["input, which is for run", () => resumed({ input: {} }), "invalid_option", '"input"'],
    ["a number for its thread", () => resumed({ thread: 7 }), "invalid_id", "7"],
    ["a path for its store", () => resumed({ store: "agent.db" }), "invalid_option", '"agent.db"'],
    [
      "a misspelt option of fork",
      () => toUntyped(fork)(graph, { store, thread: "t", at: 1, name: "b", updates: {} }),
      "invalid_option",
      '"updates"',
    ],
    [
      "a fork without a store",
      () => toUntyped(fork)(graph, { thread: "t", at: 1, name: "b" }),
      "invalid_option",
      "store",
    ],
    [
      "a misspelt option of getState",
      () => toUntyped(getState)(graph, { store, thread: "t", checkpoint: 1 }),
      "invalid_option",
      '"checkpoint"',
    ],
    [
      "a state of a value that is not a graph",
      () => toUntyped(getState)(undefined, { store, thread: "t" }),
      "invalid_option",
      "getState",
    ],
    [
      "a misspelt option of history",
      () => toUntyped(getHistory)(graph, { store, thread: "t", limit: 1 }).next(),
      "invalid_option",
      '"limit"',
    ],
  ]);

  test("answers given as a list are refused with a request for keys", async () => {
    const asking = defineGraph({ name: "g", state: State, interrupts: { ask: z.boolean() } })
      .nodes({ a: async (_state, { interrupt }) => ({ n: (await interrupt("ask")) ? 1 : 2 }) })
      .edges({ [START]: "a", a: END });
    const waitingStore = memoryStore();
    await run(asking, { store: waitingStore, thread: "t" }).result;
    for (const answers of [[true], "yes", 7]) {
      const error = await getFailure(
        toUntyped(resume)(asking, { store: waitingStore, thread: "t", answers }).result,
        "ambiguous_answer",
      );
      expectClear(error, ["ask"]);
    }
    expect(await resume(asking, { store: waitingStore, thread: "t", answers: { ask: true } }).result).toMatchObject({
      status: "done",
    });
  });
});

test("a tool node in a graph without a messages channel is refused", async () => {
  const Chat = defineState({ messages: channel.messages() });
  expect(
    defineGraph({ name: "g", state: Chat })
      .nodes({ tools: toolNode({ tools: [pay] }) })
      .edges({ [START]: "tools", tools: END }).tools,
  ).toHaveLength(1);
});
