/**
 * One life of the process of the crash matrix, over a SQLite file: a model, three calls of one tool at the same time, one of
 * them tried twice, an inner graph that asks a person, and a fork. Its argument is what may be done about the tool's effect.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { call, crashPoint, logEffect, say, scriptedModel } from "@statewright/testing";
import {
  callsOf,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  getState,
  history,
  list,
  messages,
  resume,
  route,
  run,
  START,
  sqliteStore,
  subgraph,
  ToolError,
  toolNode,
} from "statewright";
import * as z from "zod";
import { storeWithPoints } from "./store-with-points.ts";

const thread = "matrix";
const kind = process.argv[2] ?? "idempotent";

const script = scriptedModel([
  [call("act", { nth: 1 }), call("act", { nth: 2 }), call("act", { nth: 3 })],
  say("All three are done."),
]);
let asked = 0;
const model: typeof script = {
  ...script,
  respond: async (request, options) => {
    asked += 1;
    const said = request.messages.length;
    logEffect({ what: "model", said });
    crashPoint(`model asked ${asked}`);
    const reply = await script.respond(request, options);
    crashPoint(`model answered ${asked}`);
    return reply;
  },
};

const plain = defineTool({
  name: "act",
  description: "Do something outside.",
  input: z.object({ nth: z.int() }),
  effect: kind === "idempotent" ? "idempotent" : "once",
  retry: { attempts: 2, on: ["unavailable"], initialMs: 1 },
  run: async ({ nth }, { idempotencyKey, attempt }) => {
    crashPoint(`act ${nth} begins`);
    if (nth === 2 && attempt === 1) throw ToolError.unavailable("Not yet");
    // One after the other, so that each has an outcome of its own.
    for (let turn = 0; turn < nth * 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    crashPoint(`act ${nth} before its effect`);
    logEffect({ what: "act", key: idempotencyKey });
    crashPoint(`act ${nth} after its effect`);
    return `did ${idempotencyKey}`;
  },
});
const act =
  kind === "reconciled"
    ? { ...plain, reconcile: (_state: unknown, at: { readonly idempotencyKey: string }) => textOf(at.idempotencyKey) }
    : plain;

function textOf(key: string): string | undefined {
  return happened(key) ? `did ${key}` : undefined;
}

function happened(key: string): boolean {
  const effects = readFileSync("effects.ndjson", { encoding: "utf8", flag: "a+" });
  return effects.split("\n").some((line) => line.includes('"act"') && line.includes(JSON.stringify(key)));
}

const check = defineGraph({
  name: "check",
  state: defineState({ notes: list(z.string()) }),
  interrupts: { sure: z.object({ ok: z.boolean() }) },
})
  .nodes({
    look: async (_state, { step }) => ({ notes: [await step("look", () => "looked")] }),
    ask: async (_state, { interrupt }) => ({ notes: [(await interrupt("sure")).ok ? "sure" : "not sure"] }),
  })
  .edges({ [START]: "look", look: "ask", ask: END });

const graph = defineGraph({
  name: "matrix",
  state: defineState({ messages: messages(), notes: list(z.string()) }),
})
  .nodes({
    ask: async (state, { model: askModel }) => ({
      messages: [await askModel({ model, request: { messages: state.messages, tools: [] } })],
    }),
    tools: toolNode({ tools: [act] }),
    check: subgraph(check, { input: () => ({}), output: ({ notes }) => ({ notes }) }),
    end: (state) => ({ notes: [`${state.messages.length} messages`] }),
  })
  .edges({
    [START]: "ask",
    ask: route(["tools", "check"], (state) => {
      const last = state.messages.at(-1);
      return last?.role === "assistant" && callsOf(last).length > 0 ? "tools" : "check";
    }),
    tools: "ask",
    check: "end",
    end: END,
  });

const store = storeWithPoints(sqliteStore("agent.db", { durability: "normal" }));
const branches = (await store.branches(thread)).map(({ name }) => name);
const main = await goOn("main");
if (!branches.includes("again")) await forkAfterTools();
console.log(JSON.stringify({ main, forked: await goOn("again") }));
store.close();

/** Live through a branch to its end; its questions are answered as they come. */
async function goOn(branch: string): Promise<unknown> {
  const options = { store, thread, branch, onceElsewhere: "reuse" } as const;
  for (;;) {
    const begun = (await store.head(thread, branch)) !== undefined;
    const { interrupts } = begun ? await getState(graph, { store, thread, branch }) : { interrupts: [] };
    const answers: Record<string, unknown> = {};
    for (const { id, key, payload } of interrupts) {
      logEffect({ what: "answers", id, key });
      answers[id] = key === "in_doubt" ? found(payload as { readonly idempotencyKey: string }) : { ok: true };
    }
    const { status, state } = begun
      ? await resume(graph, { ...options, answers }).result
      : await run(graph, options).result;
    if (status === "done") return state;
  }
}

async function forkAfterTools(): Promise<void> {
  for await (const entry of history(graph, { store, thread, branch: "main" })) {
    if (!entry.nodes.includes("tools")) continue;
    await fork(graph, { store, thread, at: entry.checkpointId, name: "again" });
    return;
  }
}

/** What a person finds out on the other side. */
function found({ idempotencyKey }: { readonly idempotencyKey: string }): object {
  return happened(idempotencyKey) ? { happened: true, content: `did ${idempotencyKey}` } : { happened: false };
}
