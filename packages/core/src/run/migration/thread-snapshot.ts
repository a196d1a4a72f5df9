/**
 * Snapshot of a thread: pending tasks, journal and interrupts of a branch, including inner graphs. Loaded only when
 * another graph version wrote the thread. A normal resume loads no snapshot, and restores only the machine's position
 * with `restoreGraphPosition`.
 */
import { isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import type { CheckpointRow, Control, Task } from "../../checkpoint/checkpoint.ts";
import { restoreState } from "../../checkpoint/codec/saved-state.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { GraphVersion } from "../../checkpoint/export/thread-export.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { createExecutingValue } from "../../compile/compile-machine.ts";
import type { Migration } from "../../compile/migration.ts";
import { getPlan, type Plan } from "../../compile/plan.ts";
import { getToolGraph } from "../../define/graph-tool.ts";
import { findSubgraph, findTool } from "../../define/inner-graph.ts";
import type { Message } from "../../model/message.ts";
import { listPendingCalls, toCallSegment } from "../conversation/pending-calls.ts";
import { findInheritedCheckpoint, type ThreadReader } from "../journal/persistent-subgraph.ts";
import type { Kernel, Snapshot } from "../kernel/kernel.ts";
import type { State } from "../session/returns.ts";

/** Newest checkpoint of a namespace, read with a given graph. */
export interface ThreadSnapshot {
  readonly plan: Plan;
  /** Namespace of further writes. */
  readonly namespace: string;
  /** Path of nodes from the outermost graph. */
  readonly path: readonly string[];
  readonly head: CheckpointRow;
  readonly control: Control;
  readonly state: State;
  /** Channels with a stored value. */
  readonly channels: ReadonlySet<string>;
  /** Journal rows of the step. */
  readonly effects: readonly EffectRow[];
  /** Interrupts of the step; the outermost snapshot also holds the interrupts of inner graphs. */
  readonly interrupts: readonly InterruptRow[];
  readonly calls: readonly InnerGraphCall[];
  /** Checkpoint of this namespace from an interrupted migration, which is not written again. */
  readonly migratedHead: CheckpointRow | undefined;
}

/**
 * Inner graph: of a node, active for a pending task or persisted for its next call; or of a tool, active for a call.
 */
export interface InnerGraphCall {
  /** Name of the node or tool. */
  readonly node: string;
  readonly task: Task | undefined;
  /** For a tool: index of the call in its message. */
  readonly callIndex?: number;
  /** Undefined when the node is no longer a subgraph. */
  readonly snapshot: ThreadSnapshot | undefined;
}

/**
 * A thread snapshot after migrations, with the original snapshot. Journal rows and interrupts have the same order in
 * both.
 */
export interface MigratedSnapshot extends ThreadSnapshot {
  readonly origin: ThreadSnapshot;
  /** Channels with a value that the store does not contain. */
  readonly newValues: ReadonlySet<string>;
  /** True when anything must be written, even only a rename. */
  readonly hasChanges: boolean;
  readonly inner: readonly (InnerGraphCall & { readonly snapshot: MigratedSnapshot })[];
}

/** Target of migrations: namespaces that are already migrated are read with the newest graph. */
export interface MigrationTarget {
  readonly migrations: readonly (Migration | undefined)[];
  readonly plan: Plan;
  /** Namespace after the migrations. */
  readonly namespace: string;
  readonly writer: GraphVersion;
}

/** Content of a loaded checkpoint, and the target of its migrations. */
export interface SnapshotContent extends Pick<ThreadSnapshot, "control" | "state"> {
  readonly target: MigrationTarget | undefined;
}

/** Reads the parts of a snapshot that differ between programs. */
export interface SnapshotReader {
  /** True when interrupts of the task are awaited: an update may end a task, which closes its interrupts. */
  readonly isAwaited: (control: Control, task: string) => boolean;
  /** Loads the inner graphs. */
  readonly loadCalls: (
    source: ThreadReader,
    plan: Plan,
    location: SnapshotLocation,
    content: SnapshotContent,
  ) => Promise<readonly InnerGraphCall[]>;
}

/** Reads snapshots of graphs; every inner snapshot is of a graph. */
export const graphReader: SnapshotReader = {
  isAwaited: ({ tasks }, task) => tasks.some(({ id }) => id === task),
  loadCalls: async (source, plan, location, { control, state, target }) => [
    ...(await loadSubgraphCalls(source, plan, location, { control, target })),
    ...(await loadToolGraphCalls(source, location, control, { plan, state })),
  ],
};

/** Loads pending tasks, journal and interrupts of a branch, including inner graphs, as `plan` reads them. */
export function loadThreadSnapshot(
  source: ThreadReader,
  plan: Plan,
  namespace: string,
  {
    head,
    reader,
    target,
  }: {
    readonly head: CheckpointRow;
    readonly reader: SnapshotReader;
    readonly target?: MigrationTarget | undefined;
  },
): Promise<ThreadSnapshot> {
  return loadSnapshot(source, plan, { namespace, path: [], head }, { target, reader });
}

export type SnapshotLocation = Pick<ThreadSnapshot, "namespace" | "path" | "head">;

async function loadSnapshot(
  source: ThreadReader,
  plan: Plan,
  location: SnapshotLocation,
  {
    target,
    reader = graphReader,
  }: { readonly target?: MigrationTarget | undefined; readonly reader?: SnapshotReader } = {},
): Promise<ThreadSnapshot> {
  const { store, codec, thread } = source;
  const { namespace, path, head } = location;
  const rows = await store.state(thread, head.id);
  const control = deepFreeze(parseControl(codec, head));
  const isPending = control.tasks.length > 0;
  const isOwnHead = head.branch === namespace;
  const state = Object.freeze(restoreState(plan.graph.state.channels, codec, rows));
  const interrupts = isPending && path.length === 0 ? await store.interrupts(thread, namespace) : [];
  return {
    plan,
    ...location,
    control,
    state,
    channels: new Set(rows.map(({ channel }) => channel)),
    effects: isPending && isOwnHead ? await store.effects(thread, namespace, head.step) : [],
    interrupts: interrupts.filter(({ step, task }) => step === head.step && reader.isAwaited(control, task)),
    calls: await reader.loadCalls(source, plan, location, { control, state, target }),
    migratedHead: undefined,
  };
}

async function loadSubgraphCalls(
  source: ThreadReader,
  plan: Plan,
  { namespace, path }: SnapshotLocation,
  { control, target }: { readonly control: Control; readonly target: MigrationTarget | undefined },
): Promise<readonly InnerGraphCall[]> {
  const { store, thread } = source;
  const calls: InnerGraphCall[] = [];
  const persistent = [...plan.nodes.values()].filter((node) => findSubgraph(node)?.persistence === "per-thread");
  for (const { name } of persistent) {
    const head =
      (await store.head(thread, `${namespace}/${name}`)) ?? (await findInheritedCheckpoint(source, namespace, name));
    if (head !== undefined)
      calls.push(
        await loadSubgraphCall(source, plan, control, { outer: { namespace, path }, node: name, head, target }),
      );
  }
  for (const task of control.tasks) {
    for (const name of [task.id, task.node]) {
      if (calls.some((call) => call.node === name)) continue;
      const head = await store.head(thread, `${namespace}/${name}`);
      if (head === undefined) continue;
      const call = await loadSubgraphCall(source, plan, control, {
        outer: { namespace, path },
        node: task.node,
        head,
        target,
      });
      if (call.task?.id === task.id) calls.push(call);
    }
  }
  return calls;
}

/** Loads the inner graphs of pending tool calls. */
async function loadToolGraphCalls(
  source: ThreadReader,
  { namespace, path }: SnapshotLocation,
  { tasks }: Control,
  { plan, state }: { readonly plan: Plan; readonly state: State },
): Promise<readonly InnerGraphCall[]> {
  const { store, thread } = source;
  const calls: InnerGraphCall[] = [];
  for (const task of tasks) {
    const record = plan.nodes.get(task.node);
    if (record?.logic.answersCalls !== true || plan.graph.state.channels["messages"]?.kind !== "messages") continue;
    for (const { block, index } of listPendingCalls(state["messages"] as readonly Message[]).calls) {
      const callNamespace = `${namespace}/${toCallSegment(task.id, index)}`;
      const head = await store.head(thread, callNamespace);
      if (head === undefined || head.branch !== callNamespace) continue;
      const node = block.name;
      const graph = getToolGraph(findTool(record, node))?.graph();
      const at = { namespace: callNamespace, path: [...path, node], head };
      const snapshot = graph === undefined ? undefined : await loadSnapshot(source, getPlan(graph), at);
      calls.push({ node, task, callIndex: index, snapshot });
    }
  }
  return calls;
}

/** Options of `loadSubgraphCall`. */
interface LoadSubgraphCallOptions {
  readonly outer: Pick<SnapshotLocation, "namespace" | "path">;
  readonly node: string;
  readonly head: CheckpointRow;
  readonly target: MigrationTarget | undefined;
}

async function loadSubgraphCall(
  source: ThreadReader,
  plan: Plan,
  { tasks }: Control,
  { outer, node, head, target }: LoadSubgraphCallOptions,
): Promise<InnerGraphCall> {
  const { store, codec, thread } = source;
  const { caller } = parseControl(codec, head);
  const task = tasks.find(({ id }) => id === caller?.task && head.branch.startsWith(`${outer.namespace}/`));
  const inner = findSubgraph(plan.nodes.get(node));
  const isSame =
    inner !== undefined &&
    (task === undefined || head.branch === `${outer.namespace}/${inner.persistence === "per-thread" ? node : task.id}`);
  if (!isSame) return { node, task, snapshot: undefined };
  const path = [...outer.path, node];
  const namespace = `${outer.namespace}/${inner.persistence === "per-thread" ? node : (task?.id ?? node)}`;
  const innerTarget = target === undefined ? undefined : findInnerTarget(target, node, task);
  const written = innerTarget === undefined ? undefined : await findMigratedHead(source, innerTarget);
  if (innerTarget === undefined || written === undefined)
    return {
      node,
      task,
      snapshot: await loadSnapshot(source, getPlan(inner.graph), { namespace, path, head }, { target: innerTarget }),
    };
  // The checkpoint before the migration lists the inner graphs: an interrupted migration may have missed some.
  const { source: checkpointSource, parent } = written;
  const before =
    checkpointSource === "migration" && parent !== undefined ? await store.checkpoint(thread, parent) : undefined;
  const snapshot =
    before === undefined
      ? await loadSnapshot(source, innerTarget.plan, { namespace: innerTarget.namespace, path, head: written })
      : await loadSnapshot(source, getPlan(inner.graph), { namespace, path, head: before }, { target: innerTarget });
  return { node, task, snapshot: { ...snapshot, migratedHead: written } };
}

/** Returns the newest checkpoint of a namespace if the target version wrote it. */
async function findMigratedHead(
  { store, thread }: ThreadReader,
  { namespace, writer }: MigrationTarget,
): Promise<CheckpointRow | undefined> {
  const head = await store.head(thread, namespace);
  if (head === undefined) return undefined;
  return isSameWriter(await store.writtenBy(thread, head.id), writer) ? head : undefined;
}

/** Returns the migration target of an inner graph. */
function findInnerTarget(
  { migrations, plan, namespace, writer }: MigrationTarget,
  node: string,
  task: Task | undefined,
): MigrationTarget | undefined {
  let name = node;
  const inner = migrations.map((migration) => {
    if (migration === undefined) return undefined;
    const innerMigration = Object.hasOwn(migration.inner, name) ? migration.inner[name] : undefined;
    if (Object.hasOwn(migration.nodes, name)) name = migration.nodes[name] ?? name;
    return innerMigration;
  });
  const graphOfNode = findSubgraph(plan.nodes.get(name));
  if (graphOfNode === undefined) return undefined;
  const segment = graphOfNode.persistence === "per-thread" ? name : (task?.id ?? name);
  return { migrations: inner, plan: getPlan(graphOfNode.graph), namespace: `${namespace}/${segment}`, writer };
}

/** Returns true if both writers are the same graph version with the same shape. */
export function isSameWriter(one: GraphVersion | undefined, other: GraphVersion): boolean {
  return one?.graph === other.graph && one.version === other.version && one.shape === other.shape;
}

/** Plan and kernel of a position. */
export interface PositionSource {
  readonly plan: Plan;
  readonly kernel: Kernel;
}

/**
 * Restores the snapshot of a graph. If another graph version wrote the control state (`changed`), derives the
 * snapshot from the pending nodes.
 */
export function restoreGraphPosition(
  { plan, kernel }: PositionSource,
  { thread, control, changed }: { readonly thread: string; readonly control: Control; readonly changed: boolean },
): Snapshot {
  if (changed) {
    const nodes = control.tasks.map(({ node }) => node).filter((node) => plan.nodes.has(node));
    return kernel.restore(createExecutingValue(plan.graph, nodes));
  }
  return control.machine === null
    ? kernel.enter()[0]
    : restoreMachine(kernel, plan, thread, { control, context: undefined });
}

/** Restores the saved state value. Throws `graph_changed` for a state that the machine does not have. */
export function restoreMachine(
  kernel: Kernel,
  plan: Plan,
  thread: string,
  { control, context }: { readonly control: Control; readonly context: unknown },
): Snapshot {
  try {
    return kernel.restore(control.machine, context, control.pending?.children);
  } catch (cause) {
    throw createGraphChangedError(
      plan,
      thread,
      `is in the state ${JSON.stringify(control.machine)}, which its machine no longer has`,
      cause,
    );
  }
}

function createGraphChangedError(plan: Plan, thread: string, fact: string, cause: unknown): StatewrightError {
  if (isStatewrightError(cause, "graph_changed")) return cause;
  return new StatewrightError("graph_changed", {
    what: `the thread "${thread}" ${fact}`,
    next: `Use the graph that wrote it, or another thread for "${plan.graph.name}"`,
    place: { graph: plan.graph.name, thread },
    cause,
  });
}
