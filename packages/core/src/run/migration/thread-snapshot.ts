/**
 * Where a thread stands, read whole: what is pending on a line and on the lines of the graphs inside, with what is recorded
 * of it. Read only where another version of the graph has written the thread; a run that goes on as usual needs no such look.
 */
import { deepFreeze } from "../../base/json.ts";
import type { CheckpointRow, Control, Task } from "../../checkpoint/checkpoint.ts";
import { restoreState } from "../../checkpoint/codec/saved-state.ts";
import { controlOf } from "../../checkpoint/control.ts";
import type { WrittenBy } from "../../checkpoint/export/thread-export.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Migration } from "../../compile/migration.ts";
import { type Plan, planOf } from "../../compile/plan.ts";
import { graphOfTool } from "../../define/graph-tool.ts";
import type { Message } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import { callSegment, openCalls } from "../conversation/pending-calls.ts";
import { keptBefore } from "../journal/persistent-subgraph.ts";
import type { State } from "../session/returns.ts";

/** A line of a thread at its newest checkpoint, as a graph reads it. */
export interface Stand {
  readonly plan: Plan;
  /** Where it is written from now on. */
  readonly line: string;
  /** The nodes that lead to it from the outermost graph. */
  readonly path: readonly string[];
  readonly head: CheckpointRow;
  readonly control: Control;
  readonly state: State;
  /** The channels that the store tells of. */
  readonly channels: ReadonlySet<string>;
  /** The journal of the step. */
  readonly effects: readonly EffectRow[];
  /** Questions of the step; those of the graphs inside stand with the outermost. */
  readonly questions: readonly InterruptRow[];
  readonly calls: readonly InnerCall[];
  /** What a migration that was cut short has written of this line: it is not written again. */
  readonly written: CheckpointRow | undefined;
}

/** A graph inside: of a node, at work for a pending task or kept for the next call; or of a tool, at work for a call. */
export interface InnerCall {
  /** The node, or the tool. */
  readonly node: string;
  readonly task: Task | undefined;
  /** Of a tool: which of the calls of its message it is. */
  readonly place?: number;
  /** Absent where the node is no such graph any more. */
  readonly stand: Stand | undefined;
}

/** What reading takes. */
export interface StandSource {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
}

/** Where migrations lead: lines that are there already are read as the newest graph has them. */
export interface Leading {
  readonly migrations: readonly (Migration | undefined)[];
  readonly plan: Plan;
  /** The name of the line then. */
  readonly line: string;
  readonly writer: WrittenBy;
}

/** Read where a branch stands, as `plan` has it. */
export function standOf(
  source: StandSource,
  plan: Plan,
  line: string,
  head: CheckpointRow,
  leading?: Leading,
): Promise<Stand> {
  return read(source, plan, { line, path: [], head }, leading);
}

type Where = Pick<Stand, "line" | "path" | "head">;

async function read(source: StandSource, plan: Plan, where: Where, leading: Leading | undefined): Promise<Stand> {
  const { store, codec, thread } = source;
  const { line, path, head } = where;
  const rows = await store.state(thread, head.id);
  const control = deepFreeze(controlOf(codec, head));
  const isPending = control.tasks.length > 0;
  const own = head.branch === line;
  const state = Object.freeze(restoreState(plan.graph.state.channels, codec, rows));
  const questions = isPending && path.length === 0 ? await store.interrupts(thread, line) : [];
  return {
    plan,
    ...where,
    control,
    state,
    channels: new Set(rows.map(({ channel }) => channel)),
    effects: isPending && own ? await store.effects(thread, line, head.step) : [],
    questions: questions.filter(
      ({ step, task }) => step === head.step && (plan.drawing !== undefined || isAtWork(control, task)),
    ),
    calls:
      plan.drawing === undefined
        ? [
            ...(await callsOf(source, plan, where, control, leading)),
            ...(await toolCallsOf(source, plan, where, control, state)),
          ]
        : [],
    written: undefined,
  };
}

/** A question of a task that an update has ended is over, though its step is not. */
function isAtWork({ tasks }: Control, task: string): boolean {
  return tasks.some(({ id }) => id === task);
}

async function callsOf(
  source: StandSource,
  plan: Plan,
  { line, path }: Where,
  control: Control,
  leading: Leading | undefined,
): Promise<readonly InnerCall[]> {
  const { store, thread } = source;
  const calls: InnerCall[] = [];
  const kept = [...plan.nodes.values()].filter(({ subgraph }) => subgraph?.persistence === "kept");
  for (const { name } of kept) {
    const before = (await store.head(thread, `${line}/${name}`)) ?? (await keptBefore(source, line, name));
    if (before !== undefined) calls.push(await callOf(source, plan, { line, path }, name, before, control, leading));
  }
  for (const task of control.tasks) {
    for (const name of [task.id, task.node]) {
      if (calls.some((call) => call.node === name)) continue;
      const head = await store.head(thread, `${line}/${name}`);
      if (head === undefined) continue;
      const call = await callOf(source, plan, { line, path }, task.node, head, control, leading);
      if (call.task?.id === task.id) calls.push(call);
    }
  }
  return calls;
}

/** The graphs that tools run for calls that have no answer yet. */
async function toolCallsOf(
  source: StandSource,
  plan: Plan,
  { line, path }: Where,
  { tasks }: Control,
  state: State,
): Promise<readonly InnerCall[]> {
  const { store, thread } = source;
  const calls: InnerCall[] = [];
  for (const task of tasks) {
    const tools = plan.nodes.get(task.node)?.tools;
    if (tools === undefined || plan.graph.state.channels["messages"]?.kind !== "messages") continue;
    for (const { block, place } of openCalls(state["messages"] as readonly Message[]).calls) {
      const own = `${line}/${callSegment(task.id, place)}`;
      const head = await store.head(thread, own);
      if (head === undefined || head.branch !== own) continue;
      const node = block.name;
      const graph = graphOfTool(tools.registry.get(node))?.graph();
      const at = { line: own, path: [...path, node], head };
      const stand = graph === undefined ? undefined : await read(source, planOf(graph), at, undefined);
      calls.push({ node, task, place, stand });
    }
  }
  return calls;
}

async function callOf(
  source: StandSource,
  plan: Plan,
  outer: Pick<Where, "line" | "path">,
  node: string,
  head: CheckpointRow,
  { tasks }: Control,
  leading: Leading | undefined,
): Promise<InnerCall> {
  const { store, codec, thread } = source;
  const { caller } = controlOf(codec, head);
  const task = tasks.find(({ id }) => id === caller?.task && head.branch.startsWith(`${outer.line}/`));
  const subgraph = plan.nodes.get(node)?.subgraph;
  const isSame =
    subgraph !== undefined &&
    (task === undefined || head.branch === `${outer.line}/${subgraph.persistence === "kept" ? node : task.id}`);
  if (!isSame) return { node, task, stand: undefined };
  const path = [...outer.path, node];
  const line = `${outer.line}/${subgraph.persistence === "kept" ? node : (task?.id ?? node)}`;
  const within = leading === undefined ? undefined : innerOf(leading, node, task);
  const written = within === undefined ? undefined : await broughtThere(source, within);
  if (within === undefined || written === undefined)
    return { node, task, stand: await read(source, planOf(subgraph.graph), { line, path, head }, within) };
  // Where it stood before says which graphs are inside it: a migration that was cut short may not have come to those.
  const { source: by, parent } = written;
  const before = by === "migration" && parent !== undefined ? await store.checkpoint(thread, parent) : undefined;
  const stand =
    before === undefined
      ? await read(source, within.plan, { line: within.line, path, head: written }, undefined)
      : await read(source, planOf(subgraph.graph), { line, path, head: before }, within);
  return { node, task, stand: { ...stand, written } };
}

/** The newest checkpoint of a line that is there already. */
async function broughtThere(
  { store, thread }: StandSource,
  { line, writer }: Leading,
): Promise<CheckpointRow | undefined> {
  const there = await store.head(thread, line);
  if (there === undefined) return undefined;
  return sameWriter(await store.writtenBy(thread, there.id), writer) ? there : undefined;
}

/** Where the migrations lead for a graph inside. */
function innerOf(
  { migrations, plan, line, writer }: Leading,
  node: string,
  task: Task | undefined,
): Leading | undefined {
  let name = node;
  const inner = migrations.map((migration) => {
    const within = migration?.inner[name];
    name = migration?.nodes[name] ?? name;
    return within;
  });
  const subgraph = plan.nodes.get(name)?.subgraph;
  if (subgraph === undefined) return undefined;
  const segment = subgraph.persistence === "kept" ? name : (task?.id ?? name);
  return { migrations: inner, plan: planOf(subgraph.graph), line: `${line}/${segment}`, writer };
}

/** Whether two writers are the same version of a graph in the same shape. */
export function sameWriter(one: WrittenBy | undefined, other: WrittenBy): boolean {
  return one?.graph === other.graph && one.version === other.version && one.shape === other.shape;
}
