/**
 * One process of the crash matrix over a SQLite file: a model, three parallel calls of one tool, one of them with a
 * retry, a subgraph with an interrupt, and a fork.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  type Graph,
  getHistory,
  getState,
  type Json,
  listToolCalls,
  type Model,
  resume,
  route,
  run,
  START,
  type Store,
  sqliteStore,
  subgraph,
  ToolError,
  toolNode,
} from "statewright";
import * as z from "zod";
import { createStoreWithPoints } from "./store-with-points.ts";

/** Recovery of the tool effect: repeat, reconcile, or in doubt. */
export const kinds = ["idempotent", "reconciled", "once"] as const;
export type Kind = (typeof kinds)[number];

/** Environment of a process. */
export interface Surroundings {
  /** Folder of the database and of the external effects. */
  readonly folder: string;
  /** Called at each named crash point. */
  point(name: string): void;
  /** True for a graph with a hook before each call: the start of a call is then not part of the commit of its intent. */
  readonly hasHook?: boolean;
  /** Called for each external effect: a line of `effects.ndjson`. */
  log(effect: Json): void;
}

const thread = "matrix";

/** Continues from the files of the folder to the end; returns the ends of both branches as a line of JSON. */
export async function runMatrix(kind: Kind, around: Surroundings): Promise<string> {
  const graph = matrixGraph(kind, around);
  const store = createStoreWithPoints(
    sqliteStore(join(around.folder, "agent.db"), { durability: "normal" }),
    around.point,
  );
  try {
    const branches = (await store.branches(thread)).map(({ name }) => name);
    const main = await continueRun(graph, store, "main", around);
    if (!branches.includes("again")) await forkAfterTools(graph, store);
    return JSON.stringify({ main, forked: await continueRun(graph, store, "again", around) });
  } finally {
    await store.close();
  }
}

function matrixGraph(kind: Kind, around: Surroundings): Graph {
  const model = modelWithPoints(around);
  return defineGraph({
    name: "matrix",
    state: defineState({ messages: channel.messages(), notes: channel.list(z.string()) }),
  })
    .nodes({
      ask: async (state, { model: askModel }) => ({
        messages: [await askModel({ model, request: { messages: state.messages, tools: [] } })],
      }),
      tools: toolNode({
        tools: [createAct(kind, around)],
        middleware: around.hasHook === true ? [{ name: "allow", beforeTool: async () => undefined }] : [],
      }),
      check: subgraph(check, { input: () => ({}), output: ({ notes }) => ({ notes }) }),
      end: (state) => ({ notes: [`${state.messages.length} messages`] }),
    })
    .edges({
      [START]: "ask",
      ask: route(["tools", "check"], (state) => {
        const last = state.messages.at(-1);
        return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : "check";
      }),
      tools: "ask",
      check: "end",
      end: END,
    });
}

function modelWithPoints({ point, log }: Surroundings): Model {
  // The fork in the same process repeats the requests of its origin.
  const script = scriptedModel(
    [[call("act", { nth: 1 }), call("act", { nth: 2 }), call("act", { nth: 3 })], say("All three are done.")],
    { key: "transcript" },
  );
  let asked = 0;
  return {
    ...script,
    respond: async (request, options) => {
      asked += 1;
      log({ what: "model", said: request.messages.length });
      point(`model asked ${asked}`);
      const reply = await script.respond(request, options);
      point(`model answered ${asked}`);
      return reply;
    },
  };
}

function createAct(kind: Kind, { folder, point, log }: Surroundings) {
  const act = defineTool({
    name: "act",
    description: "Do something outside.",
    input: z.object({ nth: z.int() }),
    effect: kind === "idempotent" ? "idempotent" : "once",
    retry: { attempts: 2, on: ["unavailable"], initialMs: 1 },
    run: async ({ nth }, { idempotencyKey, attempt }) => {
      point(`act ${nth} begins`);
      if (nth === 2 && attempt === 1) throw ToolError.unavailable("Not yet");
      // The calls start one after the other, so that their outcomes are distinct.
      for (let turn = 0; turn < nth * 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
      point(`act ${nth} before its effect`);
      log({ what: "act", key: idempotencyKey });
      point(`act ${nth} after its effect`);
      return `did ${idempotencyKey}`;
    },
  });
  if (kind !== "reconciled") return act;
  return {
    ...act,
    reconcile: (_state: unknown, { idempotencyKey }: { readonly idempotencyKey: string }) =>
      happened(folder, idempotencyKey) ? `did ${idempotencyKey}` : undefined,
  };
}

const check = defineGraph({
  name: "check",
  state: defineState({ notes: channel.list(z.string()) }),
  interrupts: { sure: z.object({ ok: z.boolean() }) },
})
  .nodes({
    look: async (_state, { step }) => ({ notes: [await step("look", () => "looked")] }),
    ask: async (_state, { interrupt }) => ({ notes: [(await interrupt("sure")).ok ? "sure" : "not sure"] }),
  })
  .edges({ [START]: "look", look: "ask", ask: END });

/** Runs a branch to its end and answers its interrupts. */
async function continueRun(
  graph: Graph,
  store: Store,
  branch: string,
  { folder, log }: Surroundings,
): Promise<unknown> {
  const options = { store, thread, branch, onPriorEffect: "reuse" } as const;
  for (;;) {
    const hasStarted = (await store.head(thread, branch)) !== undefined;
    const { interrupts } = hasStarted ? await getState(graph, { store, thread, branch }) : { interrupts: [] };
    const answers: Record<string, unknown> = {};
    for (const { id, key, payload } of interrupts) {
      log({ what: "answers", id, key });
      answers[id] = key === "in_doubt" ? createInDoubtAnswer(folder, payload) : { ok: true };
    }
    const { status, state } = hasStarted
      ? await resume(graph, { ...options, answers }).result
      : await run(graph, options).result;
    if (status === "done") return state;
  }
}

async function forkAfterTools(graph: Graph, store: Store): Promise<void> {
  for await (const entry of getHistory(graph, { store, thread, branch: "main" })) {
    if (!entry.nodes.includes("tools")) continue;
    await fork(graph, { store, thread, at: entry.checkpointId, name: "again" });
    return;
  }
}

/** Answer of a person who has checked the external system. */
function createInDoubtAnswer(folder: string, payload: unknown): object {
  const { idempotencyKey } = z.object({ idempotencyKey: z.string() }).parse(payload);
  return happened(folder, idempotencyKey) ? { happened: true, content: `did ${idempotencyKey}` } : { happened: false };
}

function happened(folder: string, key: string): boolean {
  const effects = readFileSync(join(folder, "effects.ndjson"), { encoding: "utf8", flag: "a+" });
  return effects.split("\n").some((line) => line.includes('"act"') && line.includes(JSON.stringify(key)));
}
