/** The superstep: fold the results of its tasks into the next state and decide what runs next. Pure: same input, same output. */
import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, describeValue } from "../../base/json.ts";
import type { Control, Held, Task } from "../../checkpoint/checkpoint.ts";
import { edgeFrom, type Plan } from "../../compile/plan.ts";
import { END, type Sends, START } from "../../define/edge.ts";
import type { EdgeRecord } from "../../define/graph.ts";
import type { Channel } from "../../state/channel.ts";
import type { Delta } from "../../state/delta.ts";
import {
  asynchronous,
  keepsOne,
  readable,
  readSend,
  type State,
  type TaskOutcome,
  type Write,
} from "../session/returns.ts";

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
  readonly free?: Control["free"];
  readonly inputs: readonly unknown[];
  readonly joins: Control["joins"];
  readonly held?: Control["held"];
}

/** What a superstep takes over from the control state before it. */
export interface Waiting extends Pick<Control, "joins" | "held"> {
  /** Tasks that are still to run beside what comes next: a join may wait for them, and deferred tasks do. */
  readonly beside?: boolean;
}

type Next = Pick<StepResult, "tasks" | "inputs" | "joins" | "held">;

/**
 * Fold the results of a superstep, in the order of its tasks, and decide what runs next. `step` is the checkpoint that this
 * makes; `outside` is what no task wrote, folded after all that tasks did.
 */
export function superstep(
  plan: Plan,
  step: number,
  before: { readonly state: State } & Waiting,
  results: readonly Finished[],
  outside: readonly Write[] = [],
): StepResult {
  const all = outside.length === 0 ? results : [...results, fromOutside(outside)];
  // What still runs sees what the superstep before it made visible.
  const { state, deltas } = fold(plan, before.state, all, before.beside === true ? [] : plan.ephemeral);
  return { state, deltas, ...nextTasks(plan, step, state, before, results) };
}

/** The tasks of the first superstep. */
export function firstTasks(plan: Plan, step: number, state: State): Next {
  return nextTasks(plan, step, state, { joins: {} }, [
    { task: { id: `${step}:0`, node: START }, outcome: { writes: [], leads: [] } },
  ]);
}

/** Fold the input of a run: like a superstep it clears what the one before it made visible. */
export function foldInput(plan: Plan, state: State, writes: readonly Write[]): Pick<StepResult, "state" | "deltas"> {
  return fold(plan, state, [fromOutside(writes)], plan.ephemeral);
}

/** Fold an edit of a checkpoint: what runs next there still sees what the superstep before it made visible. */
export function foldEdit(plan: Plan, state: State, writes: readonly Write[]): Pick<StepResult, "state" | "deltas"> {
  return fold(plan, state, [fromOutside(writes)], []);
}

/** Fold the writes of results into a state, in order, without deciding what comes next. */
export function foldResults(
  plan: Plan,
  state: State,
  results: readonly Finished[],
): Pick<StepResult, "state" | "deltas"> {
  return fold(plan, state, results, plan.ephemeral);
}

/** Writes that no node made stand for one task of START. */
function fromOutside(writes: readonly Write[]): Finished {
  return { task: { id: START, node: START }, outcome: { writes, leads: [] } };
}

interface ChannelWrites {
  readonly channel: string;
  readonly by: { readonly task: Task; readonly write: Write }[];
}

function fold(
  plan: Plan,
  state: State,
  results: readonly Finished[],
  cleared: readonly string[],
): Pick<StepResult, "state" | "deltas"> {
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
  for (const name of cleared) {
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
  if (rivals.length > 1 && new Set(rivals.map(({ task }) => task.id)).size > 1)
    throw conflict(
      plan,
      name,
      rivals.map(({ task }) => task),
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

function conflict(plan: Plan, channel: string, tasks: readonly Task[], folds: boolean): StatewrightError {
  const nodes = [...new Set(tasks.map((task) => `"${task.node}"`))];
  const names =
    nodes.length > 1 ? nodes.join(" and ") : `${new Set(tasks.map(({ id }) => id)).size} tasks of ${nodes[0]}`;
  return new StatewrightError("channel_conflict", {
    what: `${names} ${folds ? "overwrote" : "wrote"} the channel "${channel}" in the same superstep, and nothing of the step was applied`,
    next: folds
      ? "Let one of them overwrite it"
      : "Let one of them write it, or make it a list, a record or a reduce channel",
    place: { graph: plan.graph.name, channel },
  });
}

function nextTasks(plan: Plan, step: number, state: State, before: Waiting, results: readonly Finished[]): Next {
  const plain = new Map<string, Set<string>>();
  const sent: Sent[] = [];
  const arrived: Record<string, readonly string[]> = { ...before.joins };
  const lead = (target: string, from: string): void => {
    if (target !== END) plain.set(target, (plain.get(target) ?? new Set()).add(from));
  };
  let led: Set<string> | undefined;
  for (const { task, outcome } of results) {
    if (outcome.leads.length > 0) {
      for (const command of outcome.leads) {
        if (command.kind === "goto") lead(command.target, task.node);
        else sent.push({ target: command.target, input: command.input, from: task.node });
      }
      continue;
    }
    if (results.length > 1) {
      led ??= new Set();
      if (led.has(task.node)) continue;
      led.add(task.node);
    }
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
  const due = plan.deferred.size === 0 ? { plain, sent } : withoutHeld(plan, before, plain, sent);
  if (due.plain.size === 0 && due.sent.length === 0 && before.beside !== true) refuseHalfJoins(plan, arrived);
  return {
    ...toTasks(plan, step, due.plain, due.sent),
    joins: arrived,
    ...("held" in due ? { held: due.held } : {}),
  };
}

interface Sent {
  readonly target: string;
  readonly input: unknown;
  readonly from: string;
}

interface Due {
  readonly plain: ReadonlyMap<string, ReadonlySet<string>>;
  readonly sent: readonly Sent[];
  readonly held?: readonly Held[];
}

/** Deferred tasks stay back while anything else runs next; when nothing does, all that were held run together. */
function withoutHeld(
  plan: Plan,
  { held: before = [], beside }: Waiting,
  plain: ReadonlyMap<string, ReadonlySet<string>>,
  sent: readonly Sent[],
): Due {
  const held = new Map(before.flatMap((each) => (each.sent === undefined ? [[each.node, new Set(each.from)]] : [])));
  const heldSends = before.flatMap(({ node, from, sent: given }) =>
    given === undefined ? [] : [{ target: node, input: given.input, from: from[0] ?? START }],
  );
  const now = new Map<string, ReadonlySet<string>>();
  for (const [node, from] of plain) {
    if (plan.deferred.has(node)) held.set(node, new Set([...(held.get(node) ?? []), ...from]));
    else now.set(node, from);
  }
  const sentNow = sent.filter(({ target }) => !plan.deferred.has(target));
  heldSends.push(...sent.filter(({ target }) => plan.deferred.has(target)));
  if (now.size === 0 && sentNow.length === 0 && beside !== true) return { plain: held, sent: heldSends };
  if (held.size === 0 && heldSends.length === 0) return { plain: now, sent: sentNow };
  return {
    plain: now,
    sent: sentNow,
    held: [
      ...[...held].map(([node, from]) => ({ node, from: [...from] })),
      ...heldSends.map(({ target, input, from }) => ({ node: target, from: [from], sent: { input } })),
    ],
  };
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
  const answer = callChoice(() => edge.choose(state as never), "route", source, plan);
  return readable(plan, source, "route", answer, () => readTargets(plan, edge, source, answer));
}

function readTargets(
  plan: Plan,
  edge: Extract<EdgeRecord, { kind: "route" }>,
  source: string,
  answer: unknown,
): readonly string[] {
  if (answer instanceof Promise) throw asynchronous(plan, source, "route", answer);
  const place = { graph: plan.graph.name, node: source };
  const targets: readonly unknown[] = Array.isArray(answer) ? answer : [answer];
  for (const target of targets) {
    if (typeof target === "string" && edge.targets.includes(target)) continue;
    throw new StatewrightError("dead_route", {
      what: `the route after "${source}" in graph "${plan.graph.name}" returned ${describeValue(target)}, which it does not declare`,
      next:
        typeof target === "string"
          ? "Add it to the route's targets"
          : `Return one of its targets: ${edge.targets.map((known) => `"${known}"`).join(", ")}`,
      place,
    });
  }
  if (!edge.many && targets.length > 1 && new Set(targets.filter((target) => target !== END)).size > 1) {
    throw new StatewrightError("dead_route", {
      what: `the route after "${source}" in graph "${plan.graph.name}" chose ${targets.map((target) => `"${target}"`).join(" and ")}, and it may choose one`,
      next: "Declare that it may choose several: route([…], choose, { many: true })",
      place,
    });
  }
  if (targets.length > 0) return targets as readonly string[];
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
  readable(plan, source, "sends", items, () => sendEach(plan, edge, source, items, lead, sendTo));
}

function sendEach(
  plan: Plan,
  edge: Extract<EdgeRecord, { kind: "sends" }>,
  source: string,
  items: unknown,
  lead: (target: string, from: string) => void,
  sendTo: (target: string, input: unknown) => void,
): void {
  if (items instanceof Promise) throw asynchronous(plan, source, "sends", items);
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
  try {
    return choose();
  } catch (cause) {
    throw new StatewrightError("node_failed", {
      what: `the ${kind} after "${source}" in graph "${plan.graph.name}" threw: ${describeThrown(cause)}`,
      next: "Mend the function: it gets the state and decides",
      place: { graph: plan.graph.name, node: source },
      cause,
    });
  }
}

/** Nodes in the order of their declaration. */
function inOrder<Value>(plan: Plan, nodes: ReadonlyMap<string, Value>): readonly (readonly [string, Value])[] {
  if (nodes.size < 2) return [...nodes];
  const order = (node: string): number => plan.nodes.get(node)?.index ?? 0;
  return [...nodes].sort(([left], [right]) => order(left) - order(right));
}

function toTasks(
  plan: Plan,
  step: number,
  plain: ReadonlyMap<string, ReadonlySet<string>>,
  sent: readonly Sent[],
): Pick<StepResult, "tasks" | "inputs"> {
  const tasks: Task[] = inOrder(plan, plain).map(([node, from], index) => ({
    id: `${step}:${index}`,
    node,
    from: [...from],
  }));
  const inputs: unknown[] = [];
  for (const { target, input, from } of sent) {
    tasks.push({ id: `${step}:${tasks.length}`, node: target, input: inputs.length, from: [from] });
    inputs.push(input);
  }
  return { tasks, inputs };
}
