/**
 * One process over a SQLite file with a fan-out, a model, tools of every effect class and an interrupt. The crash test
 * starts, kills and restarts it; each process continues from the file.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { call, crashPoint, crashPoints, logEffect, restartExitCode, say, scriptedModel } from "@statewright/testing";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  defineTool,
  END,
  fanOut,
  getState,
  goto,
  inputNode,
  listToolCalls,
  resume,
  route,
  run,
  START,
  sqliteStore,
  toolNode,
} from "statewright";
import * as z from "zod";

const thread = "errands-1";

const model = scriptedModel([
  [
    say("I weigh, book and charge."),
    call("weigh", { kilos: 3 }),
    call("book", { seat: "4A" }),
    call("charge", { cents: 900 }),
  ],
  say("All is arranged."),
]);

const weigh = defineTool({
  name: "weigh",
  description: "Weigh.",
  input: z.object({ kilos: z.number() }),
  effect: "pure",
  run: ({ kilos }) => `${kilos} kg`,
});
const book = defineTool({
  name: "book",
  description: "Book a seat; the other side honours the key.",
  input: z.object({ seat: z.string() }),
  effect: "idempotent",
  run: ({ seat }, { idempotencyKey }) => {
    logEffect({ what: "book", key: idempotencyKey });
    crashPoint("inside book");
    return `booked ${seat}`;
  },
});
const charge = defineTool({
  name: "charge",
  description: "Charge a card; the other side can be asked whether it happened.",
  input: z.object({ cents: z.int() }),
  effect: "once",
  run: ({ cents }, { idempotencyKey }) => {
    logEffect({ what: "charge", key: idempotencyKey });
    crashPoint("inside charge");
    return `charged ${cents}`;
  },
  reconcile: ({ cents }, { idempotencyKey }) => (happened(idempotencyKey) ? `charged ${cents}` : undefined),
});

function happened(key: string): boolean {
  const effects = readFileSync("effects.ndjson", { encoding: "utf8", flag: "a+" });
  return effects.split("\n").some((line) => line.includes('"charge"') && line.includes(JSON.stringify(key)));
}

const errands = defineGraph({
  name: "errands",
  state: defineState({
    cities: z.array(z.string()).default(["Oslo", "Turin", "Graz"]),
    weather: channel.list(z.string()),
    messages: channel.messages(),
    verdict: z.string().default(""),
  }),
  interrupts: { approve: z.object({ ok: z.boolean() }) },
})
  .nodes({
    plan: () => undefined,
    look: inputNode(z.string(), async (_state, { input, step }) => {
      const seen = await step(`weather of ${input}`, ({ idempotencyKey }) => {
        logEffect({ what: "look", key: idempotencyKey });
        return `${input}: rain`;
      });
      return { weather: [seen] };
    }),
    ask: async (state, { model: askModel }) => ({
      messages: [await askModel({ model, request: { messages: state.messages, tools: [] } })],
    }),
    tools: toolNode({ tools: [weigh, book, charge] }),
    approve: async (_state, { interrupt }) => {
      const { ok } = await interrupt("approve", { payload: { total: 900 } });
      return goto("end", { verdict: ok ? "approved" : "declined" });
    },
    end: (state) => ({ weather: [`${state.weather.length} cities seen, ${state.verdict}`] }),
  })
  .edges({
    [START]: "plan",
    plan: fanOut("look", (state) => state.cities, { otherwise: "ask" }),
    look: "ask",
    ask: route(["tools", "approve"], (state) => {
      const last = state.messages.at(-1);
      return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : "approve";
    }),
    tools: "ask",
    approve: commandTargets("end"),
    end: END,
  });

const store = crashPoints(sqliteStore("agent.db", { durability: "normal" }));
const result = await continueRun();
if (result.status === "waiting") process.exitCode = restartExitCode;
else console.log(JSON.stringify({ status: result.status, state: result.state }));
await store.close();

async function continueRun() {
  if ((await store.head(thread)) === undefined) return run(errands, { store, thread }).result;
  const { interrupts } = await getState(errands, { store, thread });
  const answers = interrupts.length === 0 ? {} : { answers: { approve: { ok: true } } };
  return resume(errands, { store, thread, ...answers }).result;
}
