/** The superstep: fold the results of its tasks into the next state and decide what runs next. Pure: same input, same output. */
import { type Draft, enableMapSet, enablePatches, Immer } from "immer";
import { describeThrown, type ErrorPlace, StatewrightError } from "../base/errors.ts";
import { deepFreeze, isPlainObject, sameData } from "../base/json.ts";
import { issuesText, parseWith } from "../base/schema.ts";
import type { Control, Task } from "../checkpoint/checkpoint.ts";
import { edgeFrom, type Plan } from "../compile/plan.ts";
import { commandKind, commandOf, type Goto, type Recipe, type Send } from "../define/command.ts";
import { END, type Sends, START } from "../define/edge.ts";
import type { EdgeRecord } from "../define/graph.ts";
import { type Channel, isOverwrite } from "../state/channel.ts";
import { applyDelta, type Delta, type Patch } from "../state/delta.ts";

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
}

/** A task with its outcome. */
export interface Finished {
  readonly task: Task;
  readonly outcome: TaskOutcome;
}

/** The next checkpoint, before it has a machine state. */
export interface StepResult {
  readonly state: State;
  readonly deltas: Readonly<Record<string, Delta>>;
  readonly tasks: readonly Task[];
  readonly inputs: readonly unknown[];
  readonly joins: Control["joins"];
}

/** Parse what a node returned against its state: an error names graph, node and channel, and nothing is applied. */
export function readReturn(plan: Plan, node: string, state: State, returned: unknown): TaskOutcome {
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
  return { writes, leads };
}

/** Fold the results of a superstep, in the order of its tasks, and decide what runs next. `step` is the checkpoint that this makes. */
export function superstep(
  plan: Plan,
  step: number,
  before: { readonly state: State; readonly joins: Control["joins"] },
  results: readonly Finished[],
): StepResult {
  const { state, deltas } = foldResults(plan, before.state, results);
  return { state, deltas, ...nextTasks(plan, step, state, before.joins, results) };
}

/** The tasks of the first superstep. */
export function firstTasks(plan: Plan, step: number, state: State): Pick<StepResult, "tasks" | "inputs" | "joins"> {
  return nextTasks(plan, step, state, {}, [
    { task: { id: `${step}:0`, node: START }, outcome: { writes: [], leads: [] } },
  ]);
}

/** Fold writes that came from outside a node: an input, an edit. */
export function foldWrites(
  plan: Plan,
  step: number,
  state: State,
  writes: readonly Write[],
): Pick<StepResult, "state" | "deltas"> {
  return foldResults(plan, state, [{ task: { id: `${step}:0`, node: START }, outcome: { writes, leads: [] } }]);
}

/** Parse a partial state; throws `unknown_channel` or `invalid_update`. `node` is where it came from. */
export function readUpdate(plan: Plan, node: string, update: unknown): Write[] {
  const place: ErrorPlace = { graph: plan.graph.name, node };
  if (!isPlainObject(update)) {
    throw new StatewrightError("invalid_update", {
      what: `the node "${node}" returned ${describeValue(update)}, which is not a partial state`,
      next: "Return an object of channels, a list of them, update(…), goto(…), send(…), or nothing",
      place,
    });
  }
  const writes: Write[] = [];
  for (const [name, value] of Object.entries(update)) {
    if (value === undefined) continue;
    const channel = plan.graph.state.channels[name];
    if (channel === undefined || !Object.hasOwn(plan.graph.state.channels, name)) {
      throw new StatewrightError("unknown_channel", {
        what: `the node "${node}" wrote the channel "${name}", which the state of graph "${plan.graph.name}" does not have`,
        next: `Channels are ${Object.keys(plan.graph.state.channels)
          .map((known) => `"${known}"`)
          .join(", ")}`,
        place: { ...place, channel: name },
      });
    }
    writes.push(readWrite(channel, name, value, place));
  }
  return writes;
}

function readWrite(channel: Channel, name: string, value: unknown, place: ErrorPlace): Write {
  const whole = isOverwrite(value);
  const parsed = whole ? channel.parseValue(value.overwrite) : channel.parse(value);
  if (!parsed.ok) {
    throw new StatewrightError("invalid_update", {
      what: `the node "${place.node}" wrote the channel "${name}" with a value that its schema refuses: ${issuesText(parsed.issues)}`,
      next: "Return what the schema asks for, or change the schema",
      place: { ...place, channel: name, ...(parsed.issues[0]?.path ? { path: parsed.issues[0].path } : {}) },
      details: parsed.issues,
    });
  }
  return { channel: name, kind: whole ? "overwrite" : "fold", value: parsed.value };
}

function readCommand(plan: Plan, node: string, state: State, command: Recipe<unknown> | Goto | Send): TaskOutcome {
  if (commandKind(command) === "recipe")
    return { writes: readRecipe(plan, node, state, command as Recipe<unknown>), leads: [] };
  const { target } = command as Goto | Send;
  const edge = edgeFrom(plan, node);
  if (edge.kind !== "gotos" || !edge.targets.includes(target)) {
    throw new StatewrightError("dead_route", {
      what: `the node "${node}" in graph "${plan.graph.name}" leads to "${target}", which its edge does not declare`,
      next: `Add "${target}" to its gotos(…)`,
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

function readSend(plan: Plan, source: string, target: string, input: unknown): Extract<Lead, { kind: "send" }> {
  const node = plan.nodes.get(target);
  const parsed = node?.input === undefined ? { ok: true as const, value: input } : parseWith(node.input, input);
  if (parsed.ok) return { kind: "send", target, input: deepFreeze(parsed.value) };
  throw new StatewrightError("invalid_update", {
    what: `the node "${source}" sent "${target}" an input that its schema refuses: ${issuesText(parsed.issues)}`,
    next: "Send what the task node declares",
    place: { graph: plan.graph.name, node: source },
    details: parsed.issues,
  });
}

enablePatches();
enableMapSet();
const drafts: Immer = new Immer({ autoFreeze: false });

function readRecipe(plan: Plan, node: string, state: State, command: Recipe<unknown>): Write[] {
  const [changed, patches] = drafts.produceWithPatches(state, (draft: Draft<State>) => {
    const returned: unknown = command.recipe(draft as Draft<unknown>);
    if (returned instanceof Promise) throw asynchronous(plan, node, "recipe", returned);
  });
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
function keepsOne(channel: Channel | undefined): boolean {
  return channel?.kind === "last" || channel?.kind === "ephemeral" || channel?.kind === "untracked";
}

interface ChannelWrites {
  readonly channel: string;
  readonly by: { readonly task: Task; readonly write: Write }[];
}

/** Fold the writes of results into a state, in order, without deciding what comes next. */
export function foldResults(
  plan: Plan,
  state: State,
  results: readonly Finished[],
): { readonly state: State; readonly deltas: Record<string, Delta> } {
  const written = new Map<string, ChannelWrites>();
  for (const { task, outcome } of results) {
    for (const write of outcome.writes) {
      const entry = written.get(write.channel) ?? { channel: write.channel, by: [] };
      entry.by.push({ task, write });
      written.set(write.channel, entry);
    }
  }
  const next: Record<string, unknown> = { ...state };
  const deltas: Record<string, Delta> = {};
  for (const name of plan.ephemeral) {
    if (next[name] === undefined) continue;
    next[name] = undefined;
    deltas[name] = { kind: "clear" };
  }
  for (const entry of written.values()) {
    const folded = foldChannel(plan, state[entry.channel], entry);
    next[entry.channel] = folded.value;
    deltas[entry.channel] = folded.delta;
  }
  return { state: Object.freeze(next), deltas };
}

function foldChannel(
  plan: Plan,
  current: unknown,
  { channel: name, by }: ChannelWrites,
): { readonly value: unknown; readonly delta: Delta } {
  const channel = plan.graph.state.channels[name] as Channel;
  const folds = !keepsOne(channel);
  const rivals = folds ? by.filter(({ write }) => write.kind === "overwrite") : by;
  const writers = new Set(rivals.map(({ task }) => task.id));
  if (writers.size > 1)
    throw conflict(
      plan,
      name,
      rivals.map(({ task }) => task.node),
      folds,
    );
  const base = by.findLast(({ write }) => write.kind === "overwrite")?.write;
  const lastWrite = by[by.length - 1]?.write;
  if (base === undefined && by.length === 1 && lastWrite?.kind === "draft")
    return { value: deepFreeze(lastWrite.value), delta: { kind: "patch", patches: lastWrite.patches } };
  if (!folds)
    return channel.fold(
      current,
      by.map(({ write }) => write.value),
    );
  const folding = by.filter(({ write }) => write.kind !== "overwrite");
  const from = base === undefined ? current : base.value;
  if (channel.kind === "reduce") {
    const value = folding.reduce((before, each) => reduced(plan, name, channel, before, each), from);
    return { value, delta: { kind: "replace", value } };
  }
  const folded = channel.fold(
    from,
    folding.map(({ write }) => write.value),
  );
  return base === undefined ? folded : { value: folded.value, delta: { kind: "replace", value: folded.value } };
}

/** One write through a reducer, which is code of the author: its failure names the node whose write it was given. */
function reduced(
  plan: Plan,
  name: string,
  channel: Channel,
  current: unknown,
  { task: { node }, write }: ChannelWrites["by"][number],
): unknown {
  try {
    return channel.fold(current, [write.value]).value;
  } catch (cause) {
    throw new StatewrightError("invalid_update", {
      what: `the reducer of the channel "${name}" threw for a write of "${node}": ${describeThrown(cause)}`,
      next: "Mend the reducer: it gets the current value and one write and returns the next value",
      place: { graph: plan.graph.name, node, channel: name },
      cause,
    });
  }
}

function conflict(plan: Plan, channel: string, nodes: readonly string[], folds: boolean): StatewrightError {
  const names = [...new Set(nodes)].map((node) => `"${node}"`).join(" and ");
  return new StatewrightError("channel_conflict", {
    what: `${names} ${folds ? "overwrote" : "wrote"} the channel "${channel}" in the same superstep, and nothing of the step was applied`,
    next: folds
      ? "Let one of them overwrite it"
      : "Let one of them write it, or make it a list, a record or a reduce channel",
    place: { graph: plan.graph.name, channel },
  });
}

function nextTasks(
  plan: Plan,
  step: number,
  state: State,
  joins: Control["joins"],
  results: readonly Finished[],
): Pick<StepResult, "tasks" | "inputs" | "joins"> {
  const plain = new Map<string, Set<string>>();
  const sent: { readonly target: string; readonly input: unknown; readonly from: string }[] = [];
  const arrived: Record<string, readonly string[]> = { ...joins };
  const lead = (target: string, from: string): void => {
    if (target !== END) plain.set(target, (plain.get(target) ?? new Set()).add(from));
  };
  const led = new Set<string>();
  for (const { task, outcome } of results) {
    if (outcome.leads.length > 0) {
      for (const command of outcome.leads) {
        if (command.kind === "goto") lead(command.target, task.node);
        else sent.push({ target: command.target, input: command.input, from: task.node });
      }
      continue;
    }
    if (led.has(task.node)) continue;
    led.add(task.node);
    followEdge(
      plan,
      edgeFrom(plan, task.node),
      task.node,
      state,
      lead,
      (target, input) => sent.push({ target, input, from: task.node }),
      arrived,
    );
  }
  for (const [target, sources] of plan.joins) {
    if (!sources.every((source) => arrived[target]?.includes(source))) continue;
    delete arrived[target];
    for (const source of sources) lead(target, source);
  }
  if (plain.size === 0 && sent.length === 0) refuseHalfJoins(plan, arrived);
  return { ...toTasks(plan, step, plain, sent), joins: arrived };
}

/** Nothing runs next and a join still waits: its work would be lost in silence. */
function refuseHalfJoins(plan: Plan, arrived: Control["joins"]): void {
  for (const [target, sources] of Object.entries(arrived)) {
    const missing = (plan.joins.get(target) ?? []).filter((source) => !sources.includes(source));
    throw new StatewrightError("dead_route", {
      what: `the join to "${target}" in graph "${plan.graph.name}" still waits for ${missing.map((source) => `"${source}"`).join(" and ")}, and nothing runs any more`,
      next: "Lead every branch to the join, or lead the others to END before it",
      place: { graph: plan.graph.name, node: target },
    });
  }
}

function followEdge(
  plan: Plan,
  edge: EdgeRecord,
  source: string,
  state: State,
  lead: (target: string, from: string) => void,
  sendTo: (target: string, input: unknown) => void,
  arrived: Record<string, readonly string[]>,
): void {
  switch (edge.kind) {
    case "to":
      for (const target of edge.targets) lead(target, source);
      return;
    case "gotos":
      return;
    case "join":
      for (const target of edge.targets) arrived[target] = [...new Set([...(arrived[target] ?? []), source])];
      return;
    case "route":
      for (const target of chosen(plan, edge, source, state)) lead(target, source);
      return;
    case "sends":
      followSends(plan, edge, source, state, lead, sendTo);
  }
}

function chosen(
  plan: Plan,
  edge: Extract<EdgeRecord, { kind: "route" }>,
  source: string,
  state: State,
): readonly string[] {
  const place = { graph: plan.graph.name, node: source };
  const answer = callChoice(() => edge.choose(state as never), "route", source, plan);
  const targets = Array.isArray(answer) ? answer : [answer];
  for (const target of targets) {
    if (typeof target === "string" && edge.targets.includes(target)) continue;
    throw new StatewrightError("dead_route", {
      what: `the route after "${source}" in graph "${plan.graph.name}" returned ${describeValue(target)}, which it does not declare`,
      next: "Add it to the route's targets",
      place,
    });
  }
  if (!edge.many && new Set(targets.filter((target) => target !== END)).size > 1) {
    throw new StatewrightError("dead_route", {
      what: `the route after "${source}" in graph "${plan.graph.name}" chose ${targets.map((target) => `"${target}"`).join(" and ")}, and it may choose one`,
      next: "Declare that it may choose several: route([…], choose, { many: true })",
      place,
    });
  }
  if (targets.length > 0) return targets;
  throw new StatewrightError("dead_route", {
    what: `the route after "${source}" in graph "${plan.graph.name}" returned no target`,
    next: "Return END where the graph should finish",
    place,
  });
}

function followSends(
  plan: Plan,
  edge: Extract<EdgeRecord, { kind: "sends" }>,
  source: string,
  state: State,
  lead: (target: string, from: string) => void,
  sendTo: (target: string, input: unknown) => void,
): void {
  const items = callChoice(() => edge.select(state as never), "sends", source, plan);
  if (!Array.isArray(items)) {
    throw new StatewrightError("invalid_update", {
      what: `the sends after "${source}" in graph "${plan.graph.name}" selected ${describeValue(items)}, which is not a list`,
      next: "Return a list with one input a task",
      place: { graph: plan.graph.name, node: source },
    });
  }
  for (const item of items) sendTo(edge.target, readSend(plan, source, edge.target, item).input);
  if (items.length > 0) return;
  if (edge.otherwise !== undefined) {
    lead(edge.otherwise, source);
    return;
  }
  throw new StatewrightError("empty_sends", {
    what: `the sends after "${source}" in graph "${plan.graph.name}" selected nothing`,
    next: `Say where control goes then: sends("${edge.target}", …, { otherwise: … })`,
    place: { graph: plan.graph.name, node: source },
  });
}

function callChoice(
  choose: () => unknown,
  kind: Sends<never, string, unknown>["kind"] | "route",
  source: string,
  plan: Plan,
): unknown {
  let answer: unknown;
  try {
    answer = choose();
  } catch (cause) {
    throw new StatewrightError("node_failed", {
      what: `the ${kind} after "${source}" in graph "${plan.graph.name}" threw: ${describeThrown(cause)}`,
      next: "Mend the function: it gets the state and decides",
      place: { graph: plan.graph.name, node: source },
      cause,
    });
  }
  if (answer instanceof Promise) throw asynchronous(plan, source, kind, answer);
  return answer;
}

/** A function that must decide at once gave a promise: refused, and what becomes of the promise concerns nobody. */
function asynchronous(plan: Plan, node: string, kind: string, promise: Promise<unknown>): StatewrightError {
  promise.catch(() => undefined);
  return new StatewrightError("invalid_update", {
    what: `the ${kind} of "${node}" in graph "${plan.graph.name}" is asynchronous`,
    next: "Await in the body of a node, and decide here from the state alone",
    place: { graph: plan.graph.name, node },
  });
}

function toTasks(
  plan: Plan,
  step: number,
  plain: ReadonlyMap<string, ReadonlySet<string>>,
  sent: readonly { readonly target: string; readonly input: unknown; readonly from: string }[],
): Pick<StepResult, "tasks" | "inputs"> {
  const order = (node: string): number => plan.nodes.get(node)?.index ?? 0;
  const tasks: Task[] = [...plain]
    .sort(([left], [right]) => order(left) - order(right))
    .map(([node, from], index) => ({ id: `${step}:${index}`, node, from: [...from] }));
  const inputs: unknown[] = [];
  for (const { target, input, from } of sent) {
    tasks.push({ id: `${step}:${tasks.length}`, node: target, input: inputs.length, from: [from] });
    inputs.push(input);
  }
  return { tasks, inputs };
}

function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (value instanceof Promise) return "a promise";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null)
    return value.constructor?.name === "Object"
      ? "an object"
      : `an instance of ${value.constructor?.name ?? "an unnamed class"}`;
  return String(value);
}
