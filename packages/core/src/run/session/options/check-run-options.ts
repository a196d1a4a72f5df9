/**
 * Validates the options of `run` and `resume` at runtime, for programs without types, before anything starts; and parses
 * the breakpoints of a run.
 */

import { StatewrightError } from "../../../base/errors.ts";
import { checkId } from "../../../base/ids.ts";
import { invalidOption } from "../../../base/invalid-option.ts";
import { isData, isPlainObject } from "../../../base/json.ts";
import { checkChoice, checkOptions, listOptionNames } from "../../../base/options.ts";
import type { SavedBreakpoints, Task } from "../../../checkpoint/checkpoint.ts";
import { checkParties } from "../../../checkpoint/thread-rules.ts";
import type { Plan } from "../../../compile/plan.ts";
import { checkGraphOption } from "../../../define/check-graph-option.ts";
import type { GraphTypes } from "../../../define/graph.ts";
import { checkModels } from "../../../model/model-source.ts";
import { getErrorPlace, type Position } from "../parts/position.ts";
import type { Session } from "../session.ts";
import type {
  BreakpointOption,
  Breakpoints,
  CommonOptions,
  OnBusy,
  OnPriorEffect,
  ResumeOptions,
  RunOptions,
  SubmitOptions,
} from "./options.ts";

/** Options of both calls. */
const common = {
  context: true,
  thread: true,
  branch: true,
  store: true,
  secrets: true,
  relay: true,
  signal: true,
  toolUpdates: true,
  maxSteps: true,
  maxConcurrency: true,
  onTaskFailure: true,
  onPriorEffect: true,
  breakpoints: true,
  world: true,
  codec: true,
  migrations: true,
  older: true,
  inspect: true,
  models: true,
} as const;

const options: Readonly<Record<"run" | "resume" | "submit", readonly string[]>> = {
  run: listOptionNames<RunOptions<GraphTypes>>({
    input: true,
    ...common,
    onBusy: true,
    key: true,
    onKeyReused: true,
    keyBody: true,
    metadata: true,
    tenant: true,
    owner: true,
    removeMessages: true,
  }),
  resume: listOptionNames<ResumeOptions<GraphTypes>>({ answers: true, by: true, key: true, ...common }),
  submit: listOptionNames<SubmitOptions<GraphTypes>>({
    input: true,
    thread: true,
    store: true,
    onBusy: true,
    key: true,
    metadata: true,
    tenant: true,
    owner: true,
    at: true,
    debounce: true,
    priority: true,
    world: true,
    codec: true,
  }),
};

/** Option names of `resume`. */
export const resumeOptionNames: readonly string[] = options.resume;

const priorEffectPolicies: readonly unknown[] = ["ask", "reuse", "repeat"] satisfies readonly OnPriorEffect[];

/** Throws `invalid_option` for an unknown rule about `once` effects of other branches. */
export function checkPriorEffectOption(call: string, onPriorEffect: unknown): void {
  if (onPriorEffect !== undefined && !priorEffectPolicies.includes(onPriorEffect))
    throw invalidOption({
      where: call,
      option: "onPriorEffect",
      expected: '"ask", "reuse" or "repeat"',
      got: onPriorEffect,
    });
}

/** Throws `invalid_option` for an invalid graph, an unknown option, or an invalid value. */
export function checkRunOptions(call: "run" | "resume" | "submit", graph: unknown, callOptions: unknown): void {
  checkGraphOption(call, graph);
  checkOptions(call, callOptions, options[call]);
  const {
    store,
    relay,
    secrets,
    world,
    codec,
    signal,
    breakpoints,
    onPriorEffect,
    by,
    migrations,
    older,
    models,
    ...start
  } = callOptions as Readonly<Record<string, unknown>>;
  checkStoreOption(call, store);
  checkRelayOption(call, relay);
  checkCodecOption(call, codec);
  checkWorldOption(call, world);
  checkPort(call, "signal", signal, {
    members: ["aborted", "addEventListener"],
    expected: "the signal of an AbortController",
  });
  // The value is not shown: it may contain the secrets themselves.
  if (secrets !== undefined && !hasMember(secrets, "get"))
    throw invalidOption({
      where: call,
      option: "secrets",
      expected: "an object with a get method",
      found: typeof secrets === "object" ? "an object without get" : `a ${typeof secrets}`,
      fix: 'Use secrets: env(["NAME", …]), or { get: (name) => … }',
    });
  checkPriorEffectOption(call, onPriorEffect);
  checkVersions(call, { migrations, older });
  checkModels(call, models);
  checkStart(call, start);
  const { toolUpdates } = start;
  if (toolUpdates !== undefined && typeof toolUpdates !== "boolean")
    throw invalidOption({ where: call, option: "toolUpdates", expected: "true or false", got: toolUpdates });
  if (by !== undefined && (typeof by !== "string" || by === ""))
    throw invalidOption({
      where: call,
      option: "by",
      expected: "a non-empty string that names the author of the answers",
      got: by,
    });
  if (breakpoints === undefined) return;
  checkOptions(`the breakpoints of ${call}`, breakpoints, ["before", "after"]);
  for (const [side, nodes] of Object.entries(breakpoints as object))
    if (!Array.isArray(nodes))
      throw invalidOption({ where: call, option: `breakpoints.${side}`, expected: "a list of nodes", got: nodes });
}

/** Throws `invalid_option` for invalid entries in the lists of migrations and older graphs. */
export function checkVersions(
  call: string,
  { migrations = [], older = [] }: { readonly migrations?: unknown; readonly older?: unknown },
): void {
  if (!Array.isArray(older))
    throw invalidOption({ where: call, option: "older", expected: "a list of graphs", got: older });
  for (const graph of older) checkGraphOption(call, graph);
  const isMigration = (each: unknown): boolean =>
    hasMember(each, "from") && hasMember(each, "to") && hasMember(each, "inner");
  if (!Array.isArray(migrations) || !migrations.every(isMigration))
    throw invalidOption({
      where: call,
      option: "migrations",
      expected: "a list of migrations made by defineMigration",
      got: migrations,
    });
}

const busyOptions: readonly unknown[] = ["reject", "enqueue", "cancel", "rollback"] satisfies readonly OnBusy[];

function checkStart(
  call: string,
  { onBusy, key, onKeyReused = "join", metadata, tenant, owner, removeMessages }: Readonly<Record<string, unknown>>,
): void {
  if (onBusy !== undefined && !busyOptions.includes(onBusy))
    throw invalidOption({
      where: call,
      option: "onBusy",
      expected: '"reject", "enqueue", "cancel" or "rollback"',
      got: onBusy,
    });
  if (key !== undefined) checkId("idempotency key", key as string);
  checkChoice(call, { onKeyReused }, ["join", "refuse"]);
  if (metadata !== undefined && !(isPlainObject(metadata) && isData(metadata)))
    throw invalidOption({ where: call, option: "metadata", expected: "an object of plain data", got: metadata });
  checkParties(call, { tenant, owner });
  const isIds = Array.isArray(removeMessages) && removeMessages.every((id) => typeof id === "string");
  if (removeMessages !== undefined && !isIds)
    throw invalidOption({
      where: call,
      option: "removeMessages",
      expected: "a list of message ids",
      got: removeMessages,
    });
}

/** Throws `invalid_option` for an invalid world. */
export function checkWorldOption(call: string, world: unknown): void {
  checkPort(call, "world", world, {
    members: ["clock", "random", "schedule", "log"],
    expected: "a world, such as systemWorld()",
  });
}

/** Throws `invalid_option` for an invalid store. */
export function checkStoreOption(call: string, store: unknown): void {
  checkPort(call, "store", store, { members: ["claim", "commit"], expected: "memoryStore() or sqliteStore(path)" });
}

/** Throws `invalid_option` for an invalid relay. */
export function checkRelayOption(call: string, relay: unknown): void {
  checkPort(call, "relay", relay, {
    members: ["publish", "subscribe", "snapshot"],
    expected: "memoryRelay() or socketRelay(path)",
  });
}

/** Throws `invalid_option` for an invalid codec. */
export function checkCodecOption(call: string, codec: unknown): void {
  checkPort(call, "codec", codec, { members: ["encode", "decode"], expected: "createCodec([…])" });
}

export function checkPort(
  call: string,
  name: string,
  port: unknown,
  { members, expected }: { readonly members: readonly string[]; readonly expected: string },
): void {
  if (port === undefined || members.every((part) => hasMember(port, part))) return;
  throw invalidOption({ where: call, option: name, expected, got: port });
}

function hasMember(value: unknown, member: string): boolean {
  return typeof value === "object" && value !== null && member in value;
}

/**
 * Parses the option. Throws `invalid_option` for an unknown node, and `missing_store` without a store, since the run
 * could not be resumed.
 */
export function parseBreakpoints(
  plan: Plan,
  { breakpoints, store }: CommonOptions & BreakpointOption<string>,
): Breakpoints | undefined {
  if (breakpoints === undefined) return undefined;
  const { before = [], after = [] } = breakpoints;
  const unknown = [...before, ...after].find((node) => !plan.nodes.has(node));
  if (unknown !== undefined) {
    throw invalidOption({
      where: "breakpoints",
      expected: `nodes of the graph "${plan.graph.name}"`,
      got: unknown,
      fix: `Use one of ${[...plan.nodes.keys()].map((node) => `"${node}"`).join(", ")}`,
      place: { graph: plan.graph.name },
    });
  }
  if (store !== undefined) return { before: new Set(before), after: new Set(after) };
  throw new StatewrightError("missing_store", {
    what: `a run of the graph "${plan.graph.name}" has breakpoints and no store, so it could not be resumed`,
    next: "Pass a store: memoryStore() or sqliteStore(path)",
    place: { graph: plan.graph.name },
  });
}

/** Converts breakpoints for the row of a run; undefined for none. */
export function toSavedBreakpoints(breakpoints: Breakpoints | undefined): SavedBreakpoints | undefined {
  if (breakpoints === undefined || breakpoints.before.size + breakpoints.after.size === 0) return undefined;
  return { before: [...breakpoints.before], after: [...breakpoints.after] };
}

/** Restores the breakpoints of a run. Nodes that the graph no longer has are ignored. */
export function restoreBreakpoints({ nodes }: Plan, saved: SavedBreakpoints | undefined): Breakpoints | undefined {
  if (saved === undefined) return undefined;
  const selectNodes = (names: readonly string[]): ReadonlySet<string> =>
    new Set(names.filter((name) => nodes.has(name)));
  return { before: selectNodes(saved.before), after: selectNodes(saved.after) };
}

/** Creates the cause of a pause at a breakpoint in the body of a node. */
export function createBodyBreakpoint(position: Position, { id, node }: Task, key: string): StatewrightError {
  return new StatewrightError("breakpoint", {
    what: `the run paused at the breakpoint "${key}" of the node "${node}"`,
    next: "Resume the thread to continue",
    place: getErrorPlace(position, { node, task: id }),
    details: { node, key },
  });
}

/**
 * Returns the breakpoint between two supersteps as the cause of a pause. `finishedNodes`: nodes of the superstep
 * before; undefined right after a resume, which continues past the breakpoint.
 */
export function findBreakpoint(
  session: Pick<Session, "env" | "position" | "progress">,
  finishedNodes: readonly string[] | undefined,
): StatewrightError | undefined {
  const { breakpoints } = session.env;
  if (breakpoints === undefined || finishedNodes === undefined) return undefined;
  const after = [...new Set(finishedNodes)].filter((node) => breakpoints.after.has(node));
  const next = new Set(session.progress.control.tasks.map((task) => task.node));
  const before = [...next].filter((node) => breakpoints.before.has(node));
  if (after.length === 0 && before.length === 0) return undefined;
  const locations = [
    ...after.map((node) => `after the node "${node}"`),
    ...before.map((node) => `before the node "${node}"`),
  ];
  return new StatewrightError("breakpoint", {
    what: `the run paused ${locations.join(" and ")}`,
    next: "Resume the thread to continue",
    place: getErrorPlace(session.position),
    details: { after, before },
  });
}
