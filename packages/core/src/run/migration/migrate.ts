/**
 * Applies migrations to a thread snapshot: renames, and conversion of the state. Pure: the result describes the rows
 * to write. Ids and idempotency keys stay unchanged, so that an effect in flight is found under its own key.
 */

import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject } from "../../base/json.ts";
import { describeIssues } from "../../base/schema.ts";
import type { Control, Task } from "../../checkpoint/checkpoint.ts";
import { createInitialState } from "../../checkpoint/codec/saved-state.ts";
import { type InterruptRow, isOpen, isStartInDoubt } from "../../checkpoint/journal.ts";
import { removeBranchPrefix } from "../../checkpoint/thread-rules.ts";
import { createExecutingValue } from "../../compile/compile-machine.ts";
import { describeMigration, type Migration } from "../../compile/migration.ts";
import { getPlan, type Plan } from "../../compile/plan.ts";
import { getToolGraph } from "../../define/graph-tool.ts";
import { findInnerGraph, findSubgraph, findTool } from "../../define/inner-graph.ts";
import type { Codec } from "../../state/codec.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { migrationAuthor } from "../conversation/answered-error.ts";
import { isInsideToolCall, toCallSegment } from "../conversation/pending-calls.ts";
import type { State } from "../session/returns.ts";
import { renameEffect, renameOpenCalls } from "./migrate-names.ts";
import type { InnerGraphCall, MigratedSnapshot, ThreadSnapshot } from "./thread-snapshot.ts";

/** Applies migrations to a snapshot in order, and reads the result with `plan`. Throws `migration_failed`. */
export function migrate(
  snapshot: ThreadSnapshot,
  migrations: readonly Migration[],
  plan: Plan,
  { codec, program }: { readonly codec: Codec; readonly program: SnapshotMigrator },
): MigratedSnapshot {
  const final = migrations.reduce(
    (current, migration) => program.migrate(current, getPlan(migration.to), migration, codec),
    toUnmigrated(snapshot),
  );
  return final.plan === plan ? final : program.migrate(final, plan, undefined, codec);
}

/** Migrates snapshots of a program. */
export interface SnapshotMigrator {
  /** Applies a migration; without one, reads the snapshot with the plan. */
  readonly migrate: (
    snapshot: MigratedSnapshot,
    plan: Plan,
    migration: Migration | undefined,
    codec: Codec,
  ) => MigratedSnapshot;
}

/** Migrates snapshots of graphs. */
export const graphMigrator: SnapshotMigrator = {
  migrate: (snapshot, plan, migration, codec) => {
    const migrated = migrateTo(snapshot, plan, migration, { namespace: snapshot.namespace, path: [], codec });
    if (migration === undefined) return migrated;
    return { ...migrated, interrupts: migrated.interrupts.map((row) => renameInterrupt(row, migration)) };
  },
};

function toUnmigrated(snapshot: ThreadSnapshot): MigratedSnapshot {
  const inner = snapshot.calls.flatMap((call) =>
    call.snapshot === undefined ? [] : [{ ...call, snapshot: toUnmigrated(call.snapshot) }],
  );
  return { ...snapshot, origin: snapshot, newValues: new Set(), hasChanges: false, inner };
}

const noRenames: Readonly<Record<string, string>> = {};

/** Returns the new name; the name itself without an entry of its own. */
function getNewName(names: Readonly<Record<string, string>>, name: string): string {
  return (Object.hasOwn(names, name) ? names[name] : undefined) ?? name;
}

/** Options of `migrateTo`. */
interface MigrateToOptions {
  readonly namespace: string;
  readonly path: readonly string[];
  readonly codec: Codec;
}

function migrateTo(
  snapshot: MigratedSnapshot,
  plan: Plan,
  migration: Migration | undefined,
  { namespace, path, codec }: MigrateToOptions,
): MigratedSnapshot {
  const { nodes = noRenames, tools = noRenames } = migration ?? {};
  const node = (name: string): string => getNewName(nodes, name);
  const control = renameControl(snapshot.control, plan, node, path);
  const { state, newValues } = migrateState(snapshot, plan, migration);
  const renamedCalls = renameOpenCalls(plan, control, state, tools);
  const inner = snapshot.inner.map((call) => {
    const { node: previousName, task, snapshot: innerSnapshot } = call;
    if (call.callIndex !== undefined) return migrateCall({ ...call, callIndex: call.callIndex }, innerSnapshot);
    const name = node(previousName);
    const inside = findSubgraph(plan.nodes.get(name));
    const migrated =
      inside === undefined
        ? innerSnapshot
        : migrateTo(innerSnapshot, getPlan(inside.graph), migration?.inner[previousName], {
            namespace: `${namespace}/${inside.persistence === "per-thread" ? name : (task?.id ?? name)}`,
            path: [...path, name],
            codec,
          });
    return {
      node: name,
      task: task === undefined ? undefined : { ...task, node: node(task.node) },
      snapshot: migrated,
    };
  });
  function migrateCall(
    call: InnerGraphCall & { readonly callIndex: number },
    innerSnapshot: MigratedSnapshot,
  ): MigratedSnapshot["inner"][number] {
    const name = getNewName(tools, call.node);
    const task = call.task === undefined ? undefined : { ...call.task, node: node(call.task.node) };
    const graph = task === undefined ? undefined : getToolGraph(findTool(plan.nodes.get(task.node), name))?.graph();
    const callNamespace = `${namespace}/${toCallSegment(task?.id ?? "", call.callIndex)}`;
    const migrated =
      graph === undefined
        ? innerSnapshot
        : migrateTo(innerSnapshot, getPlan(graph), undefined, {
            namespace: callNamespace,
            path: [...path, name],
            codec,
          });
    return { node: name, task, callIndex: call.callIndex, snapshot: migrated };
  }
  const renames = { renameNode: node, tools, callIds: renamedCalls?.callIds ?? new Set<string>(), codec };
  const removedCalls = snapshot.calls.flatMap((call) =>
    call.snapshot === undefined ? [{ ...call, node: node(call.node) }] : [],
  );
  const calls = inner.map((call) =>
    findInnerGraph(plan.graph, call.node) === undefined ? { ...call, snapshot: undefined } : call,
  );
  return {
    ...snapshot,
    plan,
    namespace,
    path,
    control,
    state: renamedCalls === undefined ? state : Object.freeze({ ...state, messages: renamedCalls.messages }),
    newValues: renamedCalls === undefined ? newValues : new Set([...newValues, "messages"]),
    effects: snapshot.effects.map((row) => renameEffect(row, snapshot.control, renames)),
    hasChanges:
      snapshot.hasChanges ||
      migration !== undefined ||
      plan.shape !== snapshot.plan.shape ||
      namespace !== snapshot.namespace ||
      path.join(".") !== snapshot.path.join("."),
    inner,
    calls: [...calls, ...removedCalls],
  };
}

function renameControl(
  control: Control,
  plan: Plan,
  renameNode: (name: string) => string,
  path: readonly string[],
): Control {
  const { tasks, joins, deferred, startedAgents, caller } = control;
  const renamedTasks = tasks.map((task): Task => {
    const { from } = task;
    return { ...task, node: renameNode(task.node), ...(from === undefined ? {} : { from: from.map(renameNode) }) };
  });
  const pending = [...new Set(renamedTasks.map((task) => task.node))];
  return deepFreeze({
    ...control,
    machine: control.machine === null ? null : createExecutingValue(plan.graph, pending),
    tasks: renamedTasks,
    joins: Object.fromEntries(
      Object.entries(joins).map(([target, from]) => [renameNode(target), from.map(renameNode)]),
    ),
    ...(deferred === undefined
      ? {}
      : {
          deferred: deferred.map((each) => ({ ...each, node: renameNode(each.node), from: each.from.map(renameNode) })),
        }),
    ...(startedAgents === undefined ? {} : { startedAgents: startedAgents.map(renameNode) }),
    ...(caller === undefined ? {} : { caller: { ...caller, nesting: path.join("."), graph: plan.graph.name } }),
  });
}

/** Returns the state for the new graph: channels with the same name, defaults, and values from the migration. */
function migrateState(
  { state: previous, channels, newValues: before }: MigratedSnapshot,
  plan: Plan,
  migration: Migration | undefined,
): { readonly state: State; readonly newValues: ReadonlySet<string> } {
  const declared = plan.graph.state.channels;
  const next: Record<string, unknown> = createInitialState(declared);
  for (const name of Object.keys(declared))
    if ((channels.has(name) || before.has(name)) && Object.hasOwn(previous, name)) next[name] = previous[name];
  const newValues = new Set(before);
  for (const [name, value] of Object.entries(migration === undefined ? {} : computeState(migration, previous))) {
    if (value === undefined) continue;
    next[name] = parseChannelValue(migration as Migration, plan, name, value);
    newValues.add(name);
  }
  return { state: Object.freeze(next), newValues };
}

/** Returns the values of a migration by channel. Throws `migration_failed` when its function throws. */
export function computeState(migration: Migration, previous: State): object {
  if (migration.state === undefined) return {};
  let result: unknown;
  try {
    result = migration.state(previous as never);
  } catch (cause) {
    throw createMigrationError(migration, `its state threw: ${describeThrown(cause)}`, {}, cause);
  }
  if (isPlainObject(result)) return result;
  throw createMigrationError(
    migration,
    `its state returned ${describeValue(result)}, which is not an object of channels`,
  );
}

function parseChannelValue(migration: Migration, plan: Plan, name: string, value: unknown): unknown {
  const { channels } = plan.graph.state;
  const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
  if (channel === undefined)
    throw createMigrationError(migration, `its state returned "${name}", which is no channel of the new graph`, {
      channel: name,
    });
  const result = channel.parseValue(value);
  if (result.ok) return deepFreeze(result.value);
  const path = result.issues[0]?.path;
  const reason = `its state returned a value for the channel "${name}" that does not match its schema: ${describeIssues(result.issues)}`;
  throw createMigrationError(migration, reason, { channel: name, ...(path ? { path } : {}) }, result.cause);
}

/** Error of a migration, whose thread is unchanged. */
export function createMigrationError(
  migration: Migration,
  reason: string,
  place: { readonly channel?: string; readonly path?: string } = {},
  cause?: unknown,
): StatewrightError {
  return new StatewrightError("migration_failed", {
    what: `${describeMigration(migration)} failed: ${reason}`,
    next: "Fix the migration and try again; the thread was not changed",
    place: { graph: migration.to.name, ...place },
    cause,
  });
}

// Interrupts belong to the outermost graph; their node is the path of nodes to the graph that raised the interrupt.

function renameInterrupt(row: InterruptRow, migration: Migration): InterruptRow {
  if (row.answeredBy === migrationAuthor) return row;
  const path = row.node.split(".");
  const nodeName = path[path.length - 1] ?? "";
  const ownKey = row.key.slice(row.node.length - nodeName.length);
  const segments = removeBranchPrefix(row.id, row.branch).split("/");
  let level: Migration | undefined = migration;
  const nodes = path.map((name, index) => {
    const isLast = index === path.length - 1;
    if (!isLast && isInsideToolCall({ withinId: segments[index] ?? "" })) {
      const tool = level?.tools[name] ?? name;
      level = undefined;
      return tool;
    }
    const renamed = level?.nodes[name] ?? name;
    if (!isLast) level = level?.inner[name];
    return renamed;
  });
  const isDeclared = row.about === undefined && ownKey !== inDoubtKey && !isStartInDoubt(row);
  const key = isDeclared ? (level?.interrupts[ownKey] ?? ownKey) : ownKey;
  const node = nodes.join(".");
  const qualifiedKey = [...nodes.slice(0, -1), key].join(".");
  if (node === row.node && qualifiedKey === row.key) return row;
  return { ...row, node, key: qualifiedKey, id: key === ownKey ? row.id : renameInterruptId(row.id, ownKey, key) };
}

/** Renames the id of an interrupt, which ends with the interrupt's key and an optional number of a repeated key. */
function renameInterruptId(id: string, oldKey: string, newKey: string): string {
  const suffix = /:\d+$/.exec(id)?.[0] ?? "";
  const base = id.endsWith(oldKey) ? id : id.slice(0, id.length - suffix.length);
  return `${base.slice(0, base.length - oldKey.length)}${newKey}${base === id ? "" : suffix}`;
}

/**
 * Returns the rows that replace an interrupt. A changed id creates a new row, and the old row is closed with a
 * reference to it.
 */
export function createReplacementRows(
  previous: InterruptRow,
  migrated: InterruptRow,
  codec: Codec,
  now: number,
): readonly InterruptRow[] {
  if (previous === migrated) return [];
  if (previous.id === migrated.id || !isOpen(previous)) return [migrated];
  const answer = codec.encode({ migrated: migrated.id }, "the record of an interrupt under another key");
  return [{ ...previous, answer, answeredAt: now, answeredBy: migrationAuthor }, migrated];
}
