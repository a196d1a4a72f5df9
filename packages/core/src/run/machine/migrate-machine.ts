/**
 * Migrates a user-written machine: renames states in the state value and in pending delays, and replaces the context
 * with the context from the migration. Pure. The compatibility check runs afterwards, as for any thread.
 */
import { deepFreeze, describeValue, isPlainObject, type Json } from "../../base/json.ts";
import type { Control, Pending } from "../../checkpoint/checkpoint.ts";
import { listLeafNames } from "../../compile/durable-machine.ts";
import type { Migration } from "../../compile/migration.ts";
import type { Plan } from "../../compile/plan.ts";
import { getDefinition } from "../kernel/actor-tree.ts";
import { computeState, createMigrationError } from "../migration/migrate.ts";
import type { MigratedSnapshot } from "../migration/thread-snapshot.ts";

/** Migrates a user-written machine. Its journal and interrupts contain actor names, which do not change. */
export function migrateMachine(
  snapshot: MigratedSnapshot,
  plan: Plan,
  migration: Migration | undefined,
): MigratedSnapshot {
  const machine = getDefinition(snapshot.plan).machine.id;
  const next = getDefinition(plan).machine.id;
  const control = deepFreeze(renameMachineStates(snapshot.control, machine, next, migration?.nodes ?? {}));
  const values = migration === undefined ? {} : computeState(migration, snapshot.state);
  const unexpected = Object.keys(values).find((name) => name !== "context");
  if (unexpected !== undefined)
    throw createMigrationError(
      migration as Migration,
      `its state returned "${unexpected}", but a user-written machine accepts only the context`,
    );
  const context = (values as { readonly context?: unknown }).context ?? snapshot.state["context"];
  if (!isPlainObject(context))
    throw createMigrationError(
      migration as Migration,
      `its state returned the context ${describeValue(context)}, which is not an object`,
    );
  return {
    ...snapshot,
    plan,
    control,
    state: Object.freeze({ ...snapshot.state, value: control.machine, context: deepFreeze(context) }),
    newValues: new Set(["value", "context"]),
    hasChanges: snapshot.hasChanges || migration !== undefined || plan.shape !== snapshot.plan.shape,
  };
}

/** Returns the control with the new state names. */
function renameMachineStates(
  control: Control,
  machine: string,
  next: string,
  names: Readonly<Record<string, string>>,
): Control {
  const { machine: value, pending, tasks } = control;
  if (value === null) return control;
  const leaves = listLeafNames(machine, value);
  const renamed = leaves.map((leaf) => names[leaf] ?? leaf);
  const isSame = machine === next && renamed.every((leaf, index) => leaf === leaves[index]);
  if (isSame) return control;
  return {
    ...control,
    machine: renamed.length === 1 && renamed[0] === next ? value : buildStateValue(renamed, value),
    tasks: tasks.map((task) => ({ ...task, node: names[task.node] ?? task.node })),
    ...(pending === undefined
      ? {}
      : { pending: renameTimers(pending, (id) => renameTimerId(id, machine, next, names)) }),
  };
}

/**
 * Renames the delays of the root machine. Actors keep their names, which are part of their idempotency keys. An actor
 * that its new state does not invoke under that name is incompatible.
 */
function renameTimers(pending: Pending, toNewId: (old: string) => string): Pending {
  return {
    ...pending,
    timers: pending.timers.map((timer) =>
      timer.owner === ""
        ? { ...timer, id: toNewId(timer.id), event: { ...timer.event, type: toNewId(timer.event.type) } }
        : timer,
    ),
  };
}

/** Renames a timer. XState names a delay by the path of its state: `xstate.after.700.order.charging`. */
function renameTimerId(id: string, machine: string, next: string, names: Readonly<Record<string, string>>): string {
  const start = id.indexOf(`.${machine}.`);
  if (start === -1) return id;
  const path = id.slice(start + machine.length + 2);
  return `${id.slice(0, start)}.${next}.${names[path] ?? path}`;
}

/** Builds the state value from these leaves. `previous` is the old value, which shows the parallel regions. */
function buildStateValue(leaves: readonly string[], previous: Json): Json {
  const groups = new Map<string, string[]>();
  for (const leaf of leaves) {
    const [head = "", ...rest] = leaf.split(".");
    const children = groups.get(head) ?? [];
    if (rest.length > 0) children.push(rest.join("."));
    groups.set(head, children);
  }
  const [firstGroup] = groups;
  const isRegion = typeof previous === "object" && previous !== null && Object.keys(previous).length === groups.size;
  if (groups.size === 1 && firstGroup !== undefined && firstGroup[1].length === 0 && !isRegion) return firstGroup[0];
  const previousValues = typeof previous === "object" && previous !== null ? Object.values(previous) : [];
  return Object.fromEntries(
    [...groups].map(([head, below], index) => [
      head,
      below.length === 0 ? {} : buildStateValue(below, previousValues[index] ?? null),
    ]),
  );
}
