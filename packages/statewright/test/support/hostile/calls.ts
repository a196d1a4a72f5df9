/** Every function of core, sqlite and agent with valid arguments, and each argument and option made hostile. */
import * as agent from "@statewright/agent";
import * as middleware from "@statewright/agent/middleware";
import * as core from "@statewright/core";
import * as inspect from "@statewright/core/inspect";
import * as sqlite from "@statewright/sqlite";
import { scriptedModel } from "@statewright/testing";
import * as z from "zod";
import { hostileValues } from "./values.ts";

/** Call of a function with one hostile argument or option. */
export interface HostileCall {
  readonly name: string;
  readonly call: () => unknown;
}

type Arguments = readonly unknown[];

type AnyFunction = (...args: never) => unknown;

const State = core.defineState({ notes: core.channel.list(z.string()), messages: core.channel.messages() });
const graph = core
  .defineGraph({ name: "g", state: State, interrupts: { ok: z.boolean() } })
  .nodes({ say: () => ({ notes: ["said"] }) })
  .edges({ [core.START]: "say", say: core.END });
const message = { role: "user", id: "u", content: [{ type: "text", text: "hello" }] };
const tool = core.defineTool({
  name: "echo",
  description: "Echoes.",
  input: z.object({}),
  effect: "pure",
  run: () => "x",
});

/** Creates valid arguments; a function without an entry gets an empty object. */
async function createArguments(): Promise<Readonly<Record<string, () => Arguments>>> {
  const store = core.memoryStore();
  await core.run(graph, { store, thread: "t", input: {} }).result;
  const text = await inspect.exportThread(store, "t");
  const model = scriptedModel([]);
  const at = { store, thread: "t" };
  return {
    run: () => [graph, { ...at, input: {} }],
    resume: () => [graph, at],
    fork: () => [graph, { ...at, at: 1, name: "b" }],
    updateState: () => [graph, { ...at, as: "say", values: {} }],
    editMessage: () => [graph, { ...at, message }],
    steer: () => [graph, { ...at, input: "stop" }],
    getState: () => [graph, at],
    getHistory: () => [graph, at],
    listInterrupts: () => [store, { thread: "t" }],
    listRuns: () => [store, { thread: "t" }],
    listThreads: () => [store, {}],
    streamEvents: () => [store, { thread: "t" }],
    pruneThread: () => [store, { thread: "t", keepLast: 1 }],
    deleteThread: () => [store, "x"],
    copyThread: () => [store, "t", "u"],
    exportThread: () => [store, "t", {}],
    streamThreadExport: () => [store, "t"],
    importThread: () => [store, text, { as: "v" }],
    recover: () => [{ store, graphs: [graph] }],
    engine: () => [{ store, graphs: [graph] }],
    checkGraph: () => [graph, {}],
    checkRuns: () => [graph, {}],
    defineGraph: () => [{ name: "g", state: State }],
    defineState: () => [{ a: z.string() }],
    defineTool: () => [{ name: "echo", description: "Echoes.", input: z.object({}), run: () => "x" }],
    defineMiddleware: () => [{ name: "m" }],
    defineMigration: () => [{ graph: "g", from: 1, to: 2 }],
    fanOut: () => [["say"], () => []],
    route: () => [["say"], () => "say"],
    join: () => [["say"], "say"],
    goto: () => ["say", {}],
    send: () => ["say", {}],
    subgraph: () => [graph, {}],
    graphTool: () => [graph, { name: "x", description: "Runs." }],
    toolNode: () => [{ tools: [tool] }],
    inputNode: () => [{ input: z.object({}), run: () => ({}) }],
    durableMachine: () => [{}, {}],
    createAgent: () => [{ name: "a", model, tools: [tool] }],
    agentTool: () => [{ name: "a", description: "Helps.", model }, {}],
    team: () => [{ name: "t", agents: [] }],
    handoff: () => [{ to: "a" }],
    modelNode: () => [{ model }],
    sumUsage: () => [[]],
    estimateCost: () => [{}, {}],
    removeToolCalls: () => [[message]],
    getAgentEnd: () => [[message]],
    traceRun: () => [{}, {}],
    turnCountIs: () => [1],
    sqliteStore: () => [":memory:", {}],
    encryptStore: () => [":memory:", { keys: () => [] }],
    defineContext: () => [z.object({})],
    describeGraph: () => [graph],
    describeTool: () => [tool],
    lintTool: () => [tool],
    toMachineJson: () => [graph],
    toMermaid: () => [graph, {}],
    jsonSchemaInput: () => [{ type: "object" }, {}],
    toJsonSchema: () => [z.string(), "any"],
    getMessageText: () => [message],
    listToolCalls: () => [message],
    clientAnswer: () => [tool.spec],
  };
}

/** Functions whose text argument is a path: a hostile text is a valid path, and the call would create the file. */
const withPath: ReadonlySet<string> = new Set(["sqliteStore", "encryptStore"]);

/** Returns the option names that the error of an unknown option lists. */
function listOptions(call: AnyFunction, args: Arguments, index: number): readonly string[] {
  try {
    const result: unknown = Reflect.apply(call, undefined, replace(args, index, { ...Object(args[index]), zzz: 1 }));
    // Only the text of a refusal is read here; the calls of the test judge results and rejections.
    if (result instanceof Promise) void Promise.allSettled([result]);
    return [];
  } catch (thrown) {
    const [, names = ""] = /Use ([\w, ]+)\. See/.exec(thrown instanceof Error ? thrown.message : "") ?? [];
    return names === "" ? [] : names.split(", ");
  }
}

function replace(args: Arguments, index: number, value: unknown): Arguments {
  return args.map((arg, nth) => (nth === index ? value : arg));
}

/** Returns true for a part that the library made: its members are no options. */
function isPart(value: unknown): boolean {
  return ["claim", "edges", "spec", "role"].some((member) => member in Object(value));
}

function isOptions(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function listCallsOf(name: string, call: AnyFunction, createArgs: () => Arguments): readonly HostileCall[] {
  const calls: HostileCall[] = [];
  const add = (label: string, createChanged: () => Arguments): void => {
    calls.push({ name: `${name}: ${label}`, call: () => Reflect.apply(call, undefined, createChanged()) });
  };
  for (const [index, arg] of createArgs().entries()) {
    for (const [kind, create] of Object.entries(hostileValues))
      if (!(index === 0 && withPath.has(name) && typeof create() === "string"))
        add(`argument ${index} is ${kind}`, () => replace(createArgs(), index, create()));
    if (!isOptions(arg) || isPart(arg)) continue;
    const change = (key: string | symbol, create: () => unknown): Arguments => {
      const changed = Object.defineProperty({ ...Object(arg) }, key, { value: create(), enumerable: true });
      return replace(createArgs(), index, changed);
    };
    for (const key of new Set([...Object.keys(Object(arg)), ...listOptions(call, createArgs(), index)]))
      for (const [kind, create] of Object.entries(hostileValues))
        add(`option ${key} is ${kind}`, () => change(key, create));
    add("an option has a symbol as its name", () => change(Symbol("k"), () => 1));
    add("an option has the name __proto__", () => change("__proto__", () => ({ x: 1 })));
  }
  return calls;
}

function isFunction(value: unknown): value is AnyFunction {
  return typeof value === "function";
}

/** Lists the hostile calls of all exported functions, except the classes of errors. */
export async function listHostileCalls(): Promise<readonly HostileCall[]> {
  const createArgs = await createArguments();
  const functions: Readonly<Record<string, unknown>> = { ...core, ...inspect, ...sqlite, ...agent, ...middleware };
  return Object.entries(functions).flatMap(([name, value]) =>
    isFunction(value) && !name.endsWith("Error") ? listCallsOf(name, value, createArgs[name] ?? (() => [{}])) : [],
  );
}
