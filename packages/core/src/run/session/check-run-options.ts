/** The options of a call, looked at as a program without types may give them, before anything is begun. */
import { StatewrightError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { describeValue, isData, isPlainObject } from "../../base/json.ts";
import { checkOptions, optionNames } from "../../base/options.ts";
import type { GraphTypes } from "../../define/graph.ts";
import type { OnBusy, OnceElsewhere, ResumeOptions, RunOptions } from "./options.ts";

/** What both calls take. */
const common = {
  context: true,
  thread: true,
  branch: true,
  store: true,
  secrets: true,
  signal: true,
  toolUpdates: true,
  maxSteps: true,
  maxConcurrency: true,
  onTaskFailure: true,
  onceElsewhere: true,
  breakpoints: true,
  world: true,
  codec: true,
  migrations: true,
  older: true,
  inspect: true,
} as const;

const options: Readonly<Record<"run" | "resume", readonly string[]>> = {
  run: optionNames<RunOptions<GraphTypes>>({ input: true, ...common, onBusy: true, key: true, metadata: true }),
  resume: optionNames<ResumeOptions<GraphTypes>>({ answers: true, by: true, ...common }),
};

/** The names of what a resume takes. */
export const resumeNames: readonly string[] = options.resume;

const policies: readonly unknown[] = ["ask", "reuse", "repeat"] satisfies readonly OnceElsewhere[];

/** Throws `invalid_option` for a graph that is none, a name that the call does not know, or a port of another kind. */
export function checkRunOptions(call: "run" | "resume", graph: unknown, given: unknown): void {
  checkGraph(call, graph);
  checkOptions(call, given, options[call]);
  const { store, secrets, world, codec, signal, breakpoints, onceElsewhere, by, migrations, older, ...start } =
    given as Readonly<Record<string, unknown>>;
  checkStore(call, store);
  checkCodec(call, codec);
  checkPort(call, "world", world, ["clock", "random", "schedule", "log"], "a world, such as systemWorld()");
  checkPort(call, "signal", signal, ["aborted", "addEventListener"], "the signal of an AbortController");
  // What was given is not shown: it may hold the secrets themselves.
  if (secrets !== undefined && !has(secrets, "get"))
    throw new StatewrightError("invalid_option", {
      what: `the secrets of ${call} are ${typeof secrets === "object" ? "an object without a get" : `a ${typeof secrets}`}`,
      next: 'Give secrets: env(["NAME", …]), or { get: (name) => … }',
    });
  if (onceElsewhere !== undefined && !policies.includes(onceElsewhere))
    throw unfit(call, "onceElsewhere", onceElsewhere, '"ask", "reuse" or "repeat"');
  checkVersions(call, { migrations, older });
  checkStart(call, start);
  const { toolUpdates } = start;
  if (toolUpdates !== undefined && typeof toolUpdates !== "boolean")
    throw unfit(call, "toolUpdates", toolUpdates, "true or false");
  if (by !== undefined && (typeof by !== "string" || by === ""))
    throw unfit(call, "by", by, "a text that says who answers");
  if (breakpoints === undefined) return;
  checkOptions(`the breakpoints of ${call}`, breakpoints, ["before", "after"]);
  for (const [side, nodes] of Object.entries(breakpoints as object))
    if (!Array.isArray(nodes)) throw unfit(call, `breakpoints.${side}`, nodes, "a list of nodes");
}

/** Throws `invalid_option` for lists of migrations and older graphs that hold something else. */
export function checkVersions(
  call: string,
  { migrations = [], older = [] }: { readonly migrations?: unknown; readonly older?: unknown },
): void {
  if (!Array.isArray(older)) throw unfit(call, "older", older, "a list of graphs");
  for (const graph of older) checkGraph(call, graph);
  const isMigration = (each: unknown): boolean => has(each, "from") && has(each, "to") && has(each, "inner");
  if (!Array.isArray(migrations) || !migrations.every(isMigration))
    throw unfit(call, "migrations", migrations, "a list of what defineMigration made");
}

const busyOptions: readonly unknown[] = ["reject", "enqueue", "interrupt", "rollback"] satisfies readonly OnBusy[];

function checkStart(call: string, { onBusy, key, metadata }: Readonly<Record<string, unknown>>): void {
  if (onBusy !== undefined && !busyOptions.includes(onBusy))
    throw unfit(call, "onBusy", onBusy, '"reject", "enqueue", "interrupt" or "rollback"');
  if (key !== undefined) checkId("idempotency key", key as string);
  if (metadata !== undefined && !(isPlainObject(metadata) && isData(metadata)))
    throw unfit(call, "metadata", metadata, "an object of plain data");
}

/** Throws `invalid_option` for a graph that is none. */
export function checkGraph(call: string, graph: unknown): void {
  if (isPlainObject(graph) && graph["nodes"] instanceof Map && graph["edges"] instanceof Map) return;
  throw new StatewrightError("invalid_option", {
    what: `${call} got ${describeValue(graph)} where a graph is due`,
    next: "Give what defineGraph(…).nodes(…).edges(…), durable(…) or createAgent(…) made",
  });
}

/** Throws `invalid_option` for a store that is none. */
export function checkStore(call: string, store: unknown): void {
  checkPort(call, "store", store, ["claim", "commit"], "memoryStore() or sqliteStore(path)");
}

/** Throws `invalid_option` for a codec that is none. */
export function checkCodec(call: string, codec: unknown): void {
  checkPort(call, "codec", codec, ["encode", "decode"], "createCodec([…])");
}

function checkPort(call: string, name: string, port: unknown, parts: readonly string[], wanted: string): void {
  if (port === undefined || parts.every((part) => has(port, part))) return;
  throw unfit(call, name, port, wanted);
}

function has(value: unknown, part: string): boolean {
  return typeof value === "object" && value !== null && part in value;
}

function unfit(call: string, name: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the ${name} of ${call} is ${describeValue(given)}`,
    next: `Give ${wanted}`,
  });
}
