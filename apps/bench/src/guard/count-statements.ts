/**
 * Counts of the SQL statements and transactions of short work on the SQLite store. Unlike times, they do not depend on
 * the machine: a count above its limit is a regression.
 */
import Database from "better-sqlite3";
import {
  createAgent,
  defineTool,
  type Message,
  type ModelReply,
  resume,
  run,
  type Store,
  sqliteStore,
  type World,
} from "statewright";
import { systemWorld } from "statewright/adapter";
import * as z from "zod";
import { counter } from "../cases/superstep.ts";
import { interruptGraph } from "../interrupt-graph.ts";
import { createScratchFile, createScratchFolder } from "../scratch-files.ts";
import type { ApiRequest } from "../server/api-server.ts";
import { createRequestLoop } from "../server/request-loop.ts";
import { start } from "../server/statewright-api.ts";

/** Statements that read or change rows, write transactions and read transactions of one piece of work. */
export interface StatementCounts {
  readonly statements: number;
  readonly writes: number;
  readonly reads: number;
}

/** Highest counts that are no regression. */
export const countLimits = {
  "a run of one superstep on a new thread": { statements: 15, writes: 2, reads: 1 },
  "a run of ten supersteps on a new thread": { statements: 42, writes: 11, reads: 1 },
  "a resume of a waiting run with its answer": { statements: 18, writes: 2, reads: 1 },
  "a run of ten agent turns with a tool that runs once": { statements: 96, writes: 22, reads: 1 },
  "a run of ten agent turns with a pure tool": { statements: 76, writes: 22, reads: 1 },
} as const satisfies Readonly<Record<string, StatementCounts>>;

type Name = keyof typeof countLimits;

/** Repeats of each piece of work: the least count leaves out a check of the file, which depends on the clock. */
const repeats = 3;

/** Counts the statements of all pieces of work. All statements of this process are wrapped from then on. */
export async function countStatements(): Promise<Readonly<Record<Name, StatementCounts>>> {
  const executed = recordStatements();
  const file = createScratchFile("counts.db");
  const store = sqliteStore(file.path, { durability: "normal", world: createWorldWithoutTimers() });
  let nth = 0;
  const count = async (work: (thread: string) => Promise<unknown>): Promise<StatementCounts> => {
    // The first run registers the owner of the store and saves the graph.
    await work(`thread-${nth++}`);
    let least: StatementCounts | undefined;
    for (let repeat = 0; repeat < repeats; repeat++) {
      executed.length = 0;
      await work(`thread-${nth++}`);
      const counts = toCounts(executed);
      if (least === undefined || counts.statements < least.statements) least = counts;
    }
    return least ?? toCounts([]);
  };
  const runCounter = (limit: number) => (thread: string) =>
    run(counter, { input: { n: 0, limit }, store, thread }).result;
  const counts = {
    "a run of one superstep on a new thread": await count(runCounter(1)),
    "a run of ten supersteps on a new thread": await count(runCounter(10)),
    "a resume of a waiting run with its answer": await count(async (thread) => {
      const waiting = await run(interruptGraph, { store, thread, input: { log: [] } }).result;
      const id = waiting.status === "waiting" ? (waiting.interrupts[0]?.id ?? "") : "";
      executed.length = 0;
      await resume(interruptGraph, { store, thread, answers: { [id]: true } }).result;
    }),
    "a run of ten agent turns with a tool that runs once": await count((thread) => runAgent(store, thread, "once")),
    "a run of ten agent turns with a pure tool": await count((thread) => runAgent(store, thread, "pure")),
  };
  await store.close();
  file.remove();
  return counts;
}

/** Returns a sentence for each count above its limit. */
export function findCountRegressions(
  counts: Readonly<Record<string, StatementCounts>>,
  limits: Readonly<Record<string, StatementCounts>>,
): readonly string[] {
  return Object.entries(limits).flatMap(([name, highest]) =>
    (["statements", "writes", "reads"] as const).flatMap((metric) => {
      const [current, limit] = [counts[name]?.[metric] ?? 0, highest[metric]];
      return current <= limit ? [] : [`${name}: ${metric}: ${current}, expected at most ${limit}`];
    }),
  );
}

/** A slow machine would count the polls of the store as well. */
function createWorldWithoutTimers(): World {
  const world = systemWorld();
  return { ...world, schedule: { ...world.schedule, after: () => () => undefined } };
}

/** Highest counts of requests to a server, whatever the number of its threads. */
export const requestLimits = {
  "a list of threads": { statements: 3, writes: 0, reads: 1 },
  "a run of three nodes, answered at its end": { statements: 54, writes: 4, reads: 14 },
} as const satisfies Readonly<Record<string, StatementCounts>>;

/** Counts the statements of requests to a server with so many threads. */
export async function countRequests(
  threads: number,
): Promise<Readonly<Record<keyof typeof requestLimits, StatementCounts>>> {
  const executed = recordStatements();
  const folder = createScratchFolder();
  const { port, requests, close } = await start(folder.path);
  const loop = createRequestLoop(port);
  await loop.send(requests.createThread, threads);
  const count = async (request: ApiRequest): Promise<StatementCounts> => {
    await loop.send(request, 1);
    let least: StatementCounts | undefined;
    for (let repeat = 0; repeat < repeats; repeat++) {
      executed.length = 0;
      await loop.send(request, 1);
      const counts = toCounts(executed);
      if (least === undefined || counts.statements < least.statements) least = counts;
    }
    return least ?? toCounts([]);
  };
  const counts = {
    "a list of threads": await count(requests.listThreads),
    "a run of three nodes, answered at its end": await count(requests.run),
  };
  loop.close();
  await close();
  folder.remove();
  return counts;
}

/** Wraps all statements that this process prepares from now on; returns the list of the executed ones. */
function recordStatements(): string[] {
  const executed: string[] = [];
  const prepare = Database.prototype.prepare;
  Database.prototype.prepare = function recorded(this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql);
    for (const name of ["run", "get", "all", "iterate"]) {
      const call: unknown = Reflect.get(statement, name);
      if (typeof call === "function")
        Reflect.set(statement, name, (...args: unknown[]) => {
          executed.push(sql);
          return Reflect.apply(call, statement, args);
        });
    }
    return statement;
  } as typeof prepare;
  return executed;
}

function toCounts(executed: readonly string[]): StatementCounts {
  const countBy = (pattern: RegExp): number => executed.filter((sql) => pattern.test(sql)).length;
  return {
    statements: countBy(/^\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE)\b/),
    writes: countBy(/^BEGIN IMMEDIATE$/),
    reads: countBy(/^BEGIN$/),
  };
}

const turns = 10;

/** Runs an agent of ten turns, each with one tool call. */
function runAgent(store: Store, thread: string, effect: "once" | "pure"): Promise<unknown> {
  const weather = defineTool({
    name: "weather",
    description: "Current weather for a city.",
    input: z.object({ city: z.string() }),
    effect,
    run: ({ city }) => `It is raining in ${city}.`,
  });
  const reply = (messages: readonly Message[]): ModelReply => {
    const turn = (messages.length - 1) / 2;
    return turn >= turns
      ? { content: [{ type: "text", text: "Done." }], finish: "stop" }
      : { content: [{ type: "call", id: `call-${turn}`, name: "weather", args: { city: "Oslo" } }], finish: "calls" };
  };
  const model = {
    id: "scripted",
    respond: async ({ messages }: { readonly messages: readonly Message[] }) => reply(messages),
  };
  const agent = createAgent({ name: `weather-${effect}`, model, tools: [weather], maxTurns: turns + 1 });
  return agent.run({ input: "Is it raining in Oslo?", store, thread }).result;
}
