/** The graphs of the golden files: what wrote them, and what must go on with them for as long as their format is read. */
import { defineGraph, defineState, END, type Graph, list, type Schema, START, subgraph } from "@statewright/core";

/** A schema without a library, so that nothing but the format decides whether a file is read. */
function schemaOf<Value>(is: (value: unknown) => value is Value, fallback?: Value): Schema<Value, Value> {
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

const text: Schema<string, string> = schemaOf((value) => typeof value === "string");
const Log = defineState({ log: list(text) });

/** What a test decides beside the graph. */
export interface Weather {
  readonly isBroken: boolean;
  /** Told when a `once` step has started that does not end. */
  readonly hangs?: () => void;
}

function weather(context: unknown): Weather {
  return context as Weather;
}

/** Asks a person, and says when the question has expired. */
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

/** Two at once: one has its result in the journal, the other a step and a failure. */
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

/** Its process dies while a step is under way that may happen once. */
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

/** A graph inside waits in the middle of its call. */
export const nests: Graph = defineGraph({ name: "nests", state: Log })
  .nodes({ research: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }), persistence: "kept" }) })
  .edges({ [START]: "research", research: END });
