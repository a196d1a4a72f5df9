/** What a node returned, read: a partial state, recipes and commands become parsed writes and leads. Pure: nothing is applied. */
import { type Draft, enableMapSet, enablePatches, Immer, isDraft } from "immer";
import { checkAnswered } from "../../base/async-schema.ts";
import {
  describeThrown,
  type ErrorPlace,
  type ErrorRecord,
  isStatewrightError,
  StatewrightError,
} from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { deepFreeze, describeValue, isPlainObject, sameData } from "../../base/json.ts";
import { issuesText, parseWith } from "../../base/schema.ts";
import { edgeFrom, type Plan } from "../../compile/plan.ts";
import { commandKind, commandOf, type Goto, type Recipe, type Send } from "../../define/command.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { type Channel, isOverwrite, type Parsed } from "../../state/channel.ts";
import { applyDelta, type Patch } from "../../state/delta.ts";

/** State by channel. */
export type State = Readonly<Record<string, unknown>>;

/** A write to one channel, parsed. */
export type Write =
  | { readonly channel: string; readonly kind: "fold"; readonly value: unknown }
  | { readonly channel: string; readonly kind: "overwrite"; readonly value: unknown }
  | { readonly channel: string; readonly kind: "draft"; readonly value: unknown; readonly patches: readonly Patch[] };

/** Where a task's commands lead, in place of its node's edges. */
export type Lead =
  | { readonly kind: "goto"; readonly target: string }
  | { readonly kind: "send"; readonly target: string; readonly input: unknown };

/** What a finished task hands over: parsed writes, and its commands. Plain data: it is journaled when siblings are still at work. */
export interface TaskOutcome {
  readonly writes: readonly Write[];
  readonly leads: readonly Lead[];
  /** What it has put into the long-term store. */
  readonly longTerm?: readonly LongTermChange[];
  /** The run fails when this is saved. */
  readonly failure?: ErrorRecord;
}

/** Parse what a node returned against its state and its claims: an error names graph, node and channel, and nothing is applied. */
export function readReturn(plan: Plan, node: string, state: State, returned: unknown): TaskOutcome {
  return readable(plan, node, "node", returned, () => readItems(plan, node, state, returned));
}

/** Read what user code handed over. A value that throws when it is looked at is refused by name; its promises concern nobody. */
export function readable<Read>(
  plan: Plan,
  node: string,
  by: "node" | "route" | "sends",
  value: unknown,
  read: () => Read,
): Read {
  try {
    return read();
  } catch (cause) {
    disregardPromises(value);
    if (isStatewrightError(cause)) throw cause;
    const who = by === "node" ? `the node "${node}"` : `the ${by} after "${node}"`;
    throw new StatewrightError("invalid_update", {
      what: `${who} in graph "${plan.graph.name}" returned a value that cannot be read: ${describeThrown(cause)}`,
      next: "Return plain data, without getters and proxies that throw",
      place: { graph: plan.graph.name, node },
      cause,
    });
  }
}

function readItems(plan: Plan, node: string, state: State, returned: unknown): TaskOutcome {
  const writes: Write[] = [];
  const leads: Lead[] = [];
  let seen = state;
  for (const item of Array.isArray(returned) ? returned : [returned]) {
    if (item === undefined) continue;
    const command = commandOf(item);
    if (command !== undefined) {
      const read = readCommand(plan, node, seen, command);
      writes.push(...read.writes);
      leads.push(...read.leads);
    } else writes.push(...readUpdate(plan, node, item));
    if (Array.isArray(returned)) seen = withWrites(plan, state, writes);
  }
  refuseTwoGotos(plan, node, leads);
  const listed = plan.nodes.get(node)?.policy.writes;
  if (listed !== undefined) refuseUnlisted(plan, node, listed, writes);
  return { writes, leads };
}

/** A node that says what it writes writes nothing else: `checkGraph` relies on it. */
export function refuseUnlisted(
  plan: Plan,
  node: string,
  listed: readonly string[],
  writes: readonly Write[],
  who: string = `the node "${node}"`,
): void {
  const other = writes.find(({ channel }) => !listed.includes(channel));
  if (other === undefined) return;
  throw new StatewrightError("undeclared_write", {
    what: `${who} in graph "${plan.graph.name}" wrote the channel "${other.channel}", which its writes do not list`,
    next: `Add "${other.channel}" to the writes of the node, or do not return it`,
    place: { graph: plan.graph.name, node, channel: other.channel },
  });
}

/** Parse a partial state; throws `unknown_channel` or `invalid_update`. `node` is where it came from, `who` wrote it. */
export function readUpdate(plan: Plan, node: string, update: unknown, who: string = `the node "${node}"`): Write[] {
  const place: ErrorPlace = { graph: plan.graph.name, node };
  if (!isPlainObject(update)) {
    throw new StatewrightError("invalid_update", {
      what: `${who} returned ${describeValue(update)}, which is not a partial state`,
      next: "Return an object of channels, a list of them, update(…), goto(…), send(…), or nothing",
      place,
    });
  }
  const writes: Write[] = [];
  for (const [name, value] of Object.entries(update)) {
    const channel = plan.graph.state.channels[name];
    if (channel === undefined || !Object.hasOwn(plan.graph.state.channels, name)) {
      throw new StatewrightError("unknown_channel", {
        what: `${who} wrote the channel "${name}", which the state of graph "${plan.graph.name}" does not have`,
        next: `Channels are ${Object.keys(plan.graph.state.channels)
          .map((known) => `"${known}"`)
          .join(", ")}`,
        place: { ...place, channel: name },
      });
    }
    if (value !== undefined) writes.push(readWrite(channel, name, value, place, who));
  }
  return writes;
}

function readWrite(
  channel: Channel,
  name: string,
  value: unknown,
  place: ErrorPlace,
  who: string = `the node "${place.node}"`,
): Write {
  const whole = isOverwrite(value);
  const parsed = parsedBy(() => (whole ? channel.parseValue(value.overwrite) : channel.parse(value)));
  if (!parsed.ok) {
    checkAnswered(parsed, `the channel "${name}"`, { ...place, channel: name });
    throw new StatewrightError("invalid_update", {
      what: `${who} wrote the channel "${name}" with a value that its schema refuses: ${issuesText(parsed.issues)}`,
      next: "Return what the schema asks for, or change the schema",
      place: { ...place, channel: name, ...(parsed.issues[0]?.path ? { path: parsed.issues[0].path } : {}) },
      details: parsed.issues,
      cause: parsed.cause,
    });
  }
  return { channel: name, kind: whole ? "overwrite" : "fold", value: parsed.value };
}

/** A value that throws when it is parsed or frozen does not fit. */
function parsedBy(parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (cause) {
    return { ok: false, issues: [{ path: "", message: `it cannot be read: ${describeThrown(cause)}` }], cause };
  }
}

function readCommand(plan: Plan, node: string, state: State, command: Recipe<unknown> | Goto | Send): TaskOutcome {
  if (commandKind(command) === "recipe")
    return { writes: readRecipe(plan, node, state, command as Recipe<unknown>), leads: [] };
  const { target } = command as Goto | Send;
  const edge = edgeFrom(plan, node);
  if (edge.kind !== "gotos" || !edge.targets.includes(target)) {
    const named = describeValue(target);
    throw new StatewrightError("dead_route", {
      what: `the node "${node}" in graph "${plan.graph.name}" leads to ${named}, which its edge does not declare`,
      next: typeof target === "string" ? `Add ${named} to its gotos(…)` : "Give the name of a node",
      place: { graph: plan.graph.name, node },
    });
  }
  const takesInput = plan.nodes.get(target)?.kind === "task";
  if (takesInput !== (commandKind(command) === "send")) {
    throw new StatewrightError("dead_route", {
      what: `the node "${node}" in graph "${plan.graph.name}" leads to "${target}" ${takesInput ? "without an input, which it takes" : "with an input, which it does not take"}`,
      next: takesInput ? `Use send("${target}", input)` : `Use goto("${target}")`,
      place: { graph: plan.graph.name, node },
    });
  }
  if (commandKind(command) === "send")
    return { writes: [], leads: [readSend(plan, node, target, (command as Send).input)] };
  const { update } = command as Goto;
  return { writes: update === undefined ? [] : readUpdate(plan, node, update), leads: [{ kind: "goto", target }] };
}

/** A node goes to one node: several at once are edges, sends, or a route that may choose many. */
function refuseTwoGotos(plan: Plan, node: string, leads: readonly Lead[]): void {
  if (leads.length < 2) return;
  const targets = new Set(leads.flatMap((lead) => (lead.kind === "goto" ? [lead.target] : [])));
  if (targets.size < 2) return;
  throw new StatewrightError("dead_route", {
    what: `the node "${node}" in graph "${plan.graph.name}" returned gotos to ${[...targets].map((target) => `"${target}"`).join(" and ")}`,
    next: "Return one goto; for several nodes use edges, sends, or a route with { many: true }",
    place: { graph: plan.graph.name, node },
  });
}

/** A send to a task node, its input parsed; throws `invalid_update` for one that the node's schema refuses. */
export function readSend(plan: Plan, source: string, target: string, input: unknown): Extract<Lead, { kind: "send" }> {
  const node = plan.nodes.get(target);
  const parsed = node?.input === undefined ? { ok: true as const, value: input } : parseWith(node.input, input);
  if (parsed.ok) return { kind: "send", target, input: deepFreeze(parsed.value) };
  const { name: graph } = plan.graph;
  checkAnswered(parsed, `the input of the task node "${target}"`, { graph, node: target });
  throw new StatewrightError("invalid_update", {
    what: `the node "${source}" sent "${target}" an input that its schema refuses: ${issuesText(parsed.issues)}`,
    next: "Send what the task node declares",
    place: { graph: plan.graph.name, node: source },
    details: parsed.issues,
    cause: parsed.cause,
  });
}

enablePatches();
enableMapSet();
const drafts: Immer = new Immer({ autoFreeze: false });

function readRecipe(plan: Plan, node: string, state: State, command: Recipe<unknown>): Write[] {
  if (typeof command.recipe !== "function") {
    throw new StatewrightError("invalid_update", {
      what: `the node "${node}" returned update(…) of ${describeValue(command.recipe)}, which is not a recipe`,
      next: "Give update((draft) => { … }), or return the partial state itself",
      place: { graph: plan.graph.name, node },
    });
  }
  let replaces = false;
  const [changed, patches] = drafts.produceWithPatches(state, (draft: Draft<State>) => {
    const returned: unknown = callRecipe(plan, node, () => command.recipe(draft as Draft<unknown>));
    if (returned instanceof Promise) throw asynchronous(plan, node, "recipe", returned);
    replaces = standsForState(returned);
    if (replaces) disregardPromises(returned);
  });
  if (replaces && patches.length === 0) {
    throw new StatewrightError("invalid_update", {
      what: `the recipe of the node "${node}" changed nothing in its draft and returned something, which would be lost`,
      next: "Change the draft, or return the partial state from the node itself, without update(…)",
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
  return [...touched].map(([channel, inner]) => draftWrite(plan, node, state, channel, changed[channel], inner));
}

function callRecipe(plan: Plan, node: string, recipe: () => unknown): unknown {
  try {
    return recipe();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `the recipe of the node "${node}" in graph "${plan.graph.name}" failed: ${describeThrown(cause)}`,
      next: "Mend the recipe, then resume the thread: finished work is kept",
      place: { graph: plan.graph.name, node },
      cause,
    });
  }
}

/** A new state in place of a changed draft. The value of an arrow's expression, such as the length that `push` gives, is none. */
function standsForState(returned: unknown): boolean {
  if (typeof returned === "function" || typeof returned === "symbol") return true;
  return typeof returned === "object" && returned !== null && !isDraft(returned) && !Array.isArray(returned);
}

function draftWrite(
  plan: Plan,
  node: string,
  state: State,
  name: string,
  value: unknown,
  patches: readonly Patch[],
): Write {
  const channel = plan.graph.state.channels[name];
  if (channel === undefined) return readUpdate(plan, node, { [name]: value ?? null })[0] as Write;
  if (!keepsOne(channel)) {
    throw new StatewrightError("invalid_update", {
      what: `the recipe of node "${node}" changed the channel "${name}", which folds its writes`,
      next: "Return the new items for it instead, or overwrite(value)",
      place: { graph: plan.graph.name, node, channel: name },
    });
  }
  const whole = readWrite(channel, name, value, { graph: plan.graph.name, node });
  const kept =
    channel.kind === "last" &&
    patches.every((patch) => patch.path.length > 0 && leadsThroughData(state[name], patch.path)) &&
    // Not what the schema made of it, nor what a draft that stands in two places became: Immer tells of one place only.
    sameData(applyDelta(state[name], { kind: "patch", patches }), whole.value);
  return kept ? { channel: name, kind: "draft", value: whole.value, patches } : whole;
}

/** Whether a path meets only objects and lists: what changed inside a map or a set is saved whole. */
function leadsThroughData(value: unknown, path: Patch["path"]): boolean {
  let at = value;
  for (const key of path) {
    if (at === undefined) return true;
    if (!Array.isArray(at) && !isPlainObject(at)) return false;
    at = Object.hasOwn(at, key) ? at[key as keyof typeof at] : undefined;
  }
  return true;
}

/** The state as later items of the same return see it: with what the earlier ones wrote to channels that keep one value. */
function withWrites(plan: Plan, state: State, writes: readonly Write[]): State {
  const lasts = writes.filter((write) => keepsOne(plan.graph.state.channels[write.channel]));
  return lasts.length === 0
    ? state
    : { ...state, ...Object.fromEntries(lasts.map((write) => [write.channel, write.value])) };
}

/** Whether a write to a channel takes the place of its value, instead of being folded into it. */
export function keepsOne(channel: Channel | undefined): boolean {
  return channel?.kind === "last" || channel?.kind === "ephemeral" || channel?.kind === "untracked";
}

/** A function that must decide at once gave a promise: refused, and what becomes of the promise concerns nobody. */
export function asynchronous(plan: Plan, node: string, kind: string, promise: Promise<unknown>): StatewrightError {
  promise.catch(ofNoConcern);
  return new StatewrightError("invalid_update", {
    what: `the ${kind} of "${node}" in graph "${plan.graph.name}" is asynchronous`,
    next: "Await in the body of a node, and decide here from the state alone",
    place: { graph: plan.graph.name, node },
  });
}

function ofNoConcern(): void {
  // The step fails because there is a promise at all; how it ends changes nothing.
}
