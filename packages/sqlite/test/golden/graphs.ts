/** Graphs of the golden files. Change them compatibly for as long as their format is supported. */
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Graph,
  type Schema,
  START,
  subgraph,
  toolNode,
} from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";

/** A schema without a library, so that only the format decides whether a file is readable. */
function getSchema<Value>(is: (value: unknown) => value is Value, fallback?: Value): Schema<Value, Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "golden",
      validate: (given) => {
        const value = given === undefined ? fallback : given;
        return is(value) ? { value } : { issues: [{ message: "it is another value" }] };
      },
    },
  };
}

const text: Schema<string, string> = getSchema((value) => typeof value === "string");
const Log = defineState({ log: channel.list(text) });

/** Parameters that a test sets. */
export interface Weather {
  readonly isBroken: boolean;
  /** Called when a `once` step has started that never settles. */
  readonly hangs?: () => void;
}

function weather(context: unknown): Weather {
  return context as Weather;
}

/** Raises an interrupt and reports its expiry. */
export const asks: Graph = defineGraph({
  name: "asks",
  state: Log,
  interrupts: { approve: text, late: { answer: text, expiresMs: 60_000, onExpire: "nobody" } },
})
  .nodes({
    prepare: () => ({ log: ["prepared"] }),
    approve: async (_state, { interrupt }) => ({ log: [await interrupt("approve", { payload: { n: 1n } })] }),
    late: async (_state, { interrupt }) => ({ log: [await interrupt("late")] }),
  })
  .edges({ [START]: "prepare", prepare: "approve", approve: "late", late: END });

/** Two parallel nodes: one has its result in the journal, the other a step and a failure. */
export const breaks: Graph = defineGraph({ name: "breaks", state: Log })
  .nodes({
    sound: () => ({ log: ["sound"] }),
    weak: async (_state, { step, context }) => {
      const first = await step("first", () => "first");
      const second = await step("second", () => {
        if (weather(context).isBroken) throw new Error("broken");
        return "second";
      });
      return { log: [first, second] };
    },
  })
  .edges({ [START]: ["sound", "weak"], sound: END, weak: END });

/** The process dies during a once step. */
export const dies: Graph = defineGraph({ name: "dies", state: Log })
  .nodes({
    pay: {
      effect: "once",
      run: ({ log }, { context }) => {
        weather(context).hangs?.();
        return weather(context).isBroken ? new Promise<never>(() => undefined) : { log: [`paid after ${log.length}`] };
      },
    },
  })
  .edges({ [START]: "pay", pay: END });

const inner = defineGraph({ name: "inner", state: Log, interrupts: { scope: text } })
  .nodes({
    look: () => ({ log: ["looked"] }),
    scope: async (_state, { interrupt }) => ({ log: [await interrupt("scope")] }),
  })
  .edges({ [START]: "look", look: "scope", scope: END });

/** A subgraph waits in the middle of its call. */
export const nests: Graph = defineGraph({ name: "nests", state: Log })
  .nodes({
    research: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }), persistence: "per-thread" }),
  })
  .edges({ [START]: "research", research: END });

/** One value of each kind that a state supports. */
export function createEveryValue(): readonly unknown[] {
  const [bytes, error] = [Uint8Array.from([1, 2, 255]), new RangeError("outer", { cause: new Error("inner") })];
  return [
    ...[new Date(0), new Date(Number.NaN), 2n ** 100n, Number.NaN, Number.NEGATIVE_INFINITY, -0, undefined],
    ...[new Map<unknown, unknown>([[{ a: 1 }, new Set([1n])]]), new URL("https://example.org/?a=b#c"), /a+"/giu],
    Object.assign(error, { code: "E_X", at: new Date(1) }),
    new AggregateError([new TypeError("one"), new Error("two")], "several"),
    ...[bytes, bytes.buffer, new DataView(bytes.buffer), Buffer.from("text"), new Uint8ClampedArray([1])],
    ...[new Int8Array([-1]), new Int16Array([-2]), new Int32Array([-3]), new Uint16Array([2]), new Uint32Array([3])],
    ...[new Float32Array([0.5]), new Float64Array([-0]), new BigInt64Array([-1n]), new BigUint64Array([1n])],
    Object.assign(Object.create(null), { bare: true }),
    Object.assign(new Array(3), { 1: "between holes" }),
    JSON.parse('{ "__proto__": { "a": 1 }, "constructor": 2, "$": "date", "v": 0 }'),
    "\ud800 half a character",
  ];
}

const anything: Schema<unknown, unknown> = getSchema((value): value is unknown => value !== anything);

/** Saves one value of each kind and waits. */
export const keeps: Graph = defineGraph({
  name: "keeps",
  state: defineState({ kept: channel.list(anything) }),
  interrupts: { more: text },
})
  .nodes({
    keep: () => ({ kept: createEveryValue() }),
    ask: async (_state, { interrupt }) => ({ kept: [await interrupt("more", { payload: createEveryValue() })] }),
  })
  .edges({ [START]: "keep", keep: "ask", ask: END });

const noArguments = jsonSchemaInput({ type: "object" });
const pay = defineTool({
  name: "pay",
  description: "May happen once",
  input: noArguments,
  effect: "once",
  run: (_args, { context }) => {
    if (!weather(context).isBroken) throw new Error("it has happened, and is asked for again");
    return "paid";
  },
});
const choose = defineTool({ name: "choose", description: "Answered outside", input: noArguments });

/** Two tool calls: one completed, the other with an open interrupt. */
export const calls: Graph = defineGraph({
  name: "calls",
  state: defineState({ messages: channel.messages() }),
  interrupts: { choose: text },
})
  .nodes({
    ask: () => ({
      messages: {
        id: "m1",
        role: "assistant",
        finish: "calls",
        content: ["pay", "choose"].map((name) => ({ type: "call", id: `call_${name}`, name, args: {} }) as const),
      },
    }),
    tools: toolNode({ tools: [pay, choose] }),
  })
  .edges({ [START]: "ask", ask: "tools", tools: END });
