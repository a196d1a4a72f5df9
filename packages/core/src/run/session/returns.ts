/**
 * Parses the return value of a node: partial states, recipes and commands become parsed writes and routes. Pure:
 * applies nothing.
 */
import { type Draft, enableMapSet, enablePatches, Immer, isDraft } from "immer";
import { checkSyncResult } from "../../base/async-schema.ts";
import {
  describeThrown,
  type ErrorPlace,
  type ErrorRecord,
  isStatewrightError,
  StatewrightError,
} from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { deepFreeze, describeValue, isPlainObject, isSameData } from "../../base/json.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import { getEdge, type Plan } from "../../compile/plan.ts";
import { type Command, toCommand } from "../../define/command.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { type Channel, isOverwrite, type Parsed } from "../../state/channel.ts";
import { applyDelta, type Patch } from "../../state/delta.ts";

/** State: channel values by channel name. */
export type State = Readonly<Record<string, unknown>>;

/** A parsed write to one channel. */
export type Write = (
  | { readonly channel: string; readonly kind: "reduce"; readonly value: unknown }
  | { readonly channel: string; readonly kind: "overwrite"; readonly value: unknown }
  | { readonly channel: string; readonly kind: "draft"; readonly value: unknown; readonly patches: readonly Patch[] }
) & {
  /** Tool call whose result wrote, in a task with several calls. */
  readonly call?: string;
};

const callsOfUpdates: WeakMap<object, string> = new WeakMap();

/** Returns a copy of an update whose writes name a tool call. */
export function attributeUpdate(
  update: Readonly<Record<string, unknown>>,
  call: string,
): Readonly<Record<string, unknown>> {
  const copy = { ...update };
  callsOfUpdates.set(copy, call);
  return copy;
}

/** Next node chosen by a command, in place of the node's edges. */
export type RouteIntent =
  | { readonly kind: "goto"; readonly target: string }
  | { readonly kind: "send"; readonly target: string; readonly input: unknown };

/**
 * Outcome of a finished task: parsed writes and routes. Plain data, since it is journaled while sibling tasks still
 * run.
 */
export interface TaskOutcome {
  readonly writes: readonly Write[];
  readonly routes: readonly RouteIntent[];
  /** Changes to the long-term store. */
  readonly longTerm?: readonly LongTermChange[];
  /** Failure of the run, raised after this outcome is committed. */
  readonly failure?: ErrorRecord;
}

/**
 * Parses a node's return value against the state and the node's declared writes. Errors name graph, node and channel;
 * nothing is applied.
 */
export function readReturn(plan: Plan, node: string, state: State, returned: unknown): TaskOutcome {
  return guardRead(plan, node, "node", { value: returned, read: () => readItems(plan, node, state, returned) });
}

/**
 * Parses a value of user code. A value that throws on access is rejected with the source's name; rejections of its
 * promises are ignored.
 */
export function guardRead<Read>(
  plan: Plan,
  node: string,
  by: "node" | "route" | "fanOut",
  { value, read }: { readonly value: unknown; readonly read: () => Read },
): Read {
  try {
    return read();
  } catch (cause) {
    ignoreRejections(value);
    if (isStatewrightError(cause)) throw cause;
    const who = by === "node" ? `the node "${node}"` : `the ${by} after "${node}"`;
    throw new StatewrightError("invalid_update", {
      what: `${who} in graph "${plan.graph.name}" returned an unreadable value: ${describeThrown(cause)}`,
      next: "Return plain data, without getters and proxies that throw",
      place: { graph: plan.graph.name, node },
      cause,
    });
  }
}

function readItems(plan: Plan, node: string, state: State, returned: unknown): TaskOutcome {
  const writes: Write[] = [];
  const routes: RouteIntent[] = [];
  let currentState = state;
  for (const item of Array.isArray(returned) ? returned : [returned]) {
    if (item === undefined) continue;
    const command = toCommand(item);
    if (command !== undefined) {
      const read = readCommand(plan, node, currentState, command);
      writes.push(...read.writes);
      routes.push(...read.routes);
    } else writes.push(...readAttributed(plan, node, item));
    if (Array.isArray(returned)) currentState = applySingleValueWrites(plan, state, writes);
  }
  checkSingleGoto(plan, node, routes);
  const listed = plan.nodes.get(node)?.policy.writes;
  if (listed !== undefined) checkDeclaredWrites(plan, node, listed, { writes });
  return { writes, routes };
}

function readAttributed(plan: Plan, node: string, item: object): readonly Write[] {
  const writes = readUpdate(plan, node, item);
  const call = callsOfUpdates.get(item);
  return call === undefined ? writes : writes.map((write) => ({ ...write, call }));
}

/** Throws `undeclared_write` for a write outside of the node's declared writes, on which `checkGraph` relies. */
export function checkDeclaredWrites(
  plan: Plan,
  node: string,
  declared: readonly string[],
  {
    writes,
    author = `the node "${node}"`,
  }: { readonly writes: readonly Write[]; readonly author?: string | undefined },
): void {
  const undeclared = writes.find(({ channel }) => !declared.includes(channel));
  if (undeclared === undefined) return;
  throw new StatewrightError("undeclared_write", {
    what: `${author} in graph "${plan.graph.name}" wrote the channel "${undeclared.channel}", which its writes do not list`,
    next: `Add "${undeclared.channel}" to the writes of the node, or do not return it`,
    place: { graph: plan.graph.name, node, channel: undeclared.channel },
  });
}

/**
 * Parses a partial state. Throws `unknown_channel` or `invalid_update`. `node` is the location for errors, `author`
 * the author of the write.
 */
export function readUpdate(plan: Plan, node: string, update: unknown, author: string = `the node "${node}"`): Write[] {
  const place: ErrorPlace = { graph: plan.graph.name, node };
  if (!isPlainObject(update)) {
    throw new StatewrightError("invalid_update", {
      what: `${author}: expected a partial state, got ${describeValue(update)}`,
      next: "Return an object of channels, a list of them, edit(…), goto(…), send(…), or nothing",
      place,
    });
  }
  const writes: Write[] = [];
  for (const [name, value] of Object.entries(update)) {
    const channel = plan.graph.state.channels[name];
    if (channel === undefined || !Object.hasOwn(plan.graph.state.channels, name)) {
      throw new StatewrightError("unknown_channel", {
        what: `${author} wrote the channel "${name}", which the state of graph "${plan.graph.name}" does not have`,
        next: `Use one of the channels ${Object.keys(plan.graph.state.channels)
          .map((known) => `"${known}"`)
          .join(", ")}`,
        place: { ...place, channel: name },
      });
    }
    if (value !== undefined) writes.push(readWrite(channel, name, value, { place, author }));
  }
  return writes;
}

function readWrite(
  channel: Channel,
  name: string,
  value: unknown,
  { place, author = `the node "${place.node}"` }: { readonly place: ErrorPlace; readonly author?: string | undefined },
): Write {
  const isFullValue = isOverwrite(value);
  const parsed = parseSafely(() => (isFullValue ? channel.parseValue(value.overwrite) : channel.parse(value)));
  if (!parsed.ok) {
    checkSyncResult(parsed, `the channel "${name}"`, { ...place, channel: name });
    throw new StatewrightError("invalid_update", {
      what: `${author} wrote a value to the channel "${name}" that its schema rejects: ${describeIssues(parsed.issues)}`,
      next: "Return a value that matches the schema, or change the schema",
      place: { ...place, channel: name, ...(parsed.issues[0]?.path ? { path: parsed.issues[0].path } : {}) },
      details: parsed.issues,
      cause: parsed.cause,
    });
  }
  return { channel: name, kind: isFullValue ? "overwrite" : "reduce", value: parsed.value };
}

/** Parses a value; an exception during parsing or freezing becomes a schema issue. */
function parseSafely(parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (cause) {
    return { ok: false, issues: [{ path: "", message: `unreadable value: ${describeThrown(cause)}` }], cause };
  }
}

function readCommand(plan: Plan, node: string, state: State, command: Command): TaskOutcome {
  if (command.kind === "recipe") return { writes: readRecipe(plan, node, state, command.recipe), routes: [] };
  const { target } = command;
  const edge = getEdge(plan, node);
  if (edge.kind !== "commandTargets" || !edge.targets.includes(target)) {
    const shownTarget = describeValue(target);
    throw new StatewrightError("dead_route", {
      what: `the node "${node}" in graph "${plan.graph.name}" routed to ${shownTarget}, which its edge does not declare`,
      next: typeof target === "string" ? `Add ${shownTarget} to its commandTargets(…)` : "Use the name of a node",
      place: { graph: plan.graph.name, node },
    });
  }
  const takesInput = plan.nodes.get(target)?.logic.takesInput === true;
  if (takesInput !== (command.kind === "send")) {
    throw new StatewrightError("dead_route", {
      what: `the node "${node}" in graph "${plan.graph.name}" routed to "${target}" ${takesInput ? "without the input that it requires" : "with an input, which it does not accept"}`,
      next: takesInput ? `Use send("${target}", input)` : `Use goto("${target}")`,
      place: { graph: plan.graph.name, node },
    });
  }
  if (command.kind === "send") return { writes: [], routes: [readSend(plan, node, target, command.input)] };
  const { update } = command;
  return { writes: update === undefined ? [] : readUpdate(plan, node, update), routes: [{ kind: "goto", target }] };
}

/** Throws for gotos to several nodes: those need edges, sends, or a route with `many`. */
function checkSingleGoto(plan: Plan, node: string, routes: readonly RouteIntent[]): void {
  if (routes.length < 2) return;
  const targets = new Set(routes.flatMap((route) => (route.kind === "goto" ? [route.target] : [])));
  if (targets.size < 2) return;
  throw new StatewrightError("dead_route", {
    what: `the node "${node}" in graph "${plan.graph.name}" returned several goto commands, to ${[...targets].map((target) => `"${target}"`).join(" and ")}`,
    next: "Return one goto; for several nodes use edges, sends, or a route with { many: true }",
    place: { graph: plan.graph.name, node },
  });
}

/** Parses a send to an input node. Throws `invalid_update` for an input that the node's schema rejects. */
export function readSend(
  plan: Plan,
  source: string,
  target: string,
  input: unknown,
): Extract<RouteIntent, { kind: "send" }> {
  const node = plan.nodes.get(target);
  const schema = node?.logic.getInputSchema(node);
  const parsed = schema === undefined ? { ok: true as const, value: input } : parseWith(schema, input);
  if (parsed.ok) return { kind: "send", target, input: deepFreeze(parsed.value) };
  const { name: graph } = plan.graph;
  checkSyncResult(parsed, `the input of the input node "${target}"`, { graph, node: target });
  throw new StatewrightError("invalid_update", {
    what: `the node "${source}" sent an input to "${target}" that its schema rejects: ${describeIssues(parsed.issues)}`,
    next: "Send an input that matches the node's input schema",
    place: { graph: plan.graph.name, node: source },
    details: parsed.issues,
    cause: parsed.cause,
  });
}

enablePatches();
enableMapSet();
const drafts: Immer = new Immer({ autoFreeze: false });

function readRecipe(plan: Plan, node: string, state: State, recipe: (draft: unknown) => void): Write[] {
  if (typeof recipe !== "function") {
    throw new StatewrightError("invalid_update", {
      what: `edit(…) of the node "${node}": expected a function, got ${describeValue(recipe)}`,
      next: "Pass edit((draft) => { … }), or return the partial state itself",
      place: { graph: plan.graph.name, node },
    });
  }
  let replaces = false;
  const [changed, patches] = drafts.produceWithPatches(state, (draft: Draft<State>) => {
    const returned: unknown = callRecipe(plan, node, () => recipe(draft));
    if (returned instanceof Promise) throw createAsyncError(plan, node, "recipe", returned);
    replaces = isStateReplacement(returned);
    if (replaces) ignoreRejections(returned);
  });
  if (replaces && patches.length === 0) {
    throw new StatewrightError("invalid_update", {
      what: `the recipe of the node "${node}" did not change its draft and returned a value, which would be lost`,
      next: "Change the draft, or return the partial state from the node itself, without edit(…)",
      place: { graph: plan.graph.name, node },
    });
  }
  const touched = new Map<string, Patch[]>();
  for (const patch of patches) {
    const channel = String(patch.path[0]);
    const inner: Patch = {
      op: patch.op,
      path: patch.path.slice(1) as (string | number)[],
      ...(patch.op === "remove" ? {} : { value: deepFreeze(patch.value) as unknown }),
    };
    touched.set(channel, [...(touched.get(channel) ?? []), inner]);
  }
  return [...touched].map(([channel, inner]) =>
    toDraftWrite(plan, node, state, { name: channel, value: changed[channel], patches: inner }),
  );
}

function callRecipe(plan: Plan, node: string, recipe: () => unknown): unknown {
  try {
    return recipe();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `the recipe of the node "${node}" in graph "${plan.graph.name}" failed: ${describeThrown(cause)}`,
      next: "Fix the recipe, then resume the thread: finished work is saved",
      place: { graph: plan.graph.name, node },
      cause,
    });
  }
}

/**
 * Returns true if a recipe returned a new state instead of changing its draft. The value of an arrow's expression,
 * such as the length returned by `push`, does not count.
 */
function isStateReplacement(returned: unknown): boolean {
  if (typeof returned === "function" || typeof returned === "symbol") return true;
  return typeof returned === "object" && returned !== null && !isDraft(returned) && !Array.isArray(returned);
}

/** Options of `toDraftWrite`. */
interface ToDraftWriteOptions {
  readonly name: string;
  readonly value: unknown;
  readonly patches: readonly Patch[];
}

function toDraftWrite(plan: Plan, node: string, state: State, { name, value, patches }: ToDraftWriteOptions): Write {
  const channel = plan.graph.state.channels[name];
  if (channel === undefined) return readUpdate(plan, node, { [name]: value ?? null })[0] as Write;
  if (!holdsSingleValue(channel)) {
    throw new StatewrightError("invalid_update", {
      what: `the recipe of node "${node}" changed the channel "${name}", which reduces its writes`,
      next: "Return the new items for it instead, or overwrite(value)",
      place: { graph: plan.graph.name, node, channel: name },
    });
  }
  const fullWrite = readWrite(channel, name, value, { place: { graph: plan.graph.name, node } });
  const canPatch =
    channel.kind === "last" &&
    patches.every((patch) => patch.path.length > 0 && isPlainDataPath(state[name], patch.path)) &&
    // No patch write when the schema transformed the value, or when a draft occurs at two places: Immer reports only
    // one of them.
    isSameData(applyDelta(state[name], { kind: "patch", patches }), fullWrite.value);
  return canPatch ? { channel: name, kind: "draft", value: fullWrite.value, patches } : fullWrite;
}

/**
 * Returns true if a path crosses only objects and arrays: changes inside a map or a set are saved as the full value.
 */
function isPlainDataPath(value: unknown, path: Patch["path"]): boolean {
  let at = value;
  for (const key of path) {
    if (at === undefined) return true;
    if (!Array.isArray(at) && !isPlainObject(at)) return false;
    at = Object.hasOwn(at, key) ? at[key as keyof typeof at] : undefined;
  }
  return true;
}

/**
 * Returns the state for later items of the same return value: with earlier writes to channels that hold a single
 * value.
 */
function applySingleValueWrites(plan: Plan, state: State, writes: readonly Write[]): State {
  const replacements = writes.filter((write) => holdsSingleValue(plan.graph.state.channels[write.channel]));
  return replacements.length === 0
    ? state
    : { ...state, ...Object.fromEntries(replacements.map((write) => [write.channel, write.value])) };
}

/** Returns true if a write to the channel replaces its value instead of being reduced into it. */
export function holdsSingleValue(channel: Channel | undefined): boolean {
  return channel?.kind === "last" || channel?.kind === "ephemeral" || channel?.kind === "untracked";
}

/** Error of a function that must be synchronous and returned a promise; rejections of the promise are ignored. */
export function createAsyncError(plan: Plan, node: string, kind: string, promise: Promise<unknown>): StatewrightError {
  promise.catch(ignoreRejection);
  return new StatewrightError("invalid_update", {
    what: `the ${kind} of "${node}" in graph "${plan.graph.name}" is asynchronous`,
    next: "Await in the body of a node, and decide here from the state alone",
    place: { graph: plan.graph.name, node },
  });
}

function ignoreRejection(): void {
  // The step fails because of the promise itself; its result does not matter.
}
