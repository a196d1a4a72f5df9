/**
 * Migrating a machine drawn by hand: its states get their new names, in the state value and in the delays that are pending;
 * its context becomes what the migration makes of it. Pure. Whether the new machine knows all that is under way is looked at
 * afterwards, as for any thread.
 */
import type { Json } from "../../base/json.ts";
import type { Control, Pending } from "../../checkpoint/checkpoint.ts";
import { leafNames } from "../../compile/durable-machine.ts";

/** The control state under the new names of states. */
export function renamedMachine(
  control: Control,
  machine: string,
  next: string,
  names: Readonly<Record<string, string>>,
): Control {
  const { machine: value, pending, tasks } = control;
  if (value === null) return control;
  const leaves = leafNames(machine, value);
  const renamed = leaves.map((leaf) => names[leaf] ?? leaf);
  const isSame = machine === next && renamed.every((leaf, index) => leaf === leaves[index]);
  if (isSame) return control;
  return {
    ...control,
    machine: renamed.length === 1 && renamed[0] === next ? value : valueWith(renamed, value),
    tasks: tasks.map((task) => ({ ...task, node: names[task.node] ?? task.node })),
    ...(pending === undefined ? {} : { pending: renamedPending(pending, (id) => renamedId(id, machine, next, names)) }),
  };
}

/**
 * Delays of the root machine get their new names. Actors keep theirs, which are part of their idempotency keys: one that its
 * new state does not know under that name does not fit.
 */
function renamedPending(pending: Pending, id: (old: string) => string): Pending {
  return {
    ...pending,
    timers: pending.timers.map((timer) =>
      timer.owner === ""
        ? { ...timer, id: id(timer.id), event: { ...timer.event, type: id(timer.event.type) } }
        : timer,
    ),
  };
}

/** XState names a delay by the path of its state: `xstate.after.700.order.charging`. */
function renamedId(id: string, machine: string, next: string, names: Readonly<Record<string, string>>): string {
  const at = id.indexOf(`.${machine}.`);
  if (at === -1) return id;
  const path = id.slice(at + machine.length + 2);
  return `${id.slice(0, at)}.${next}.${names[path] ?? path}`;
}

/** The state value with these leaves; `like` is the old one, which says where regions were. */
function valueWith(leaves: readonly string[], like: Json): Json {
  const groups = new Map<string, string[]>();
  for (const leaf of leaves) {
    const [head = "", ...rest] = leaf.split(".");
    const below = groups.get(head) ?? [];
    if (rest.length > 0) below.push(rest.join("."));
    groups.set(head, below);
  }
  const [only] = groups;
  const isRegion = typeof like === "object" && like !== null && Object.keys(like).length === groups.size;
  if (groups.size === 1 && only !== undefined && only[1].length === 0 && !isRegion) return only[0];
  const olds = typeof like === "object" && like !== null ? Object.values(like) : [];
  return Object.fromEntries(
    [...groups].map(([head, below], index) => [head, below.length === 0 ? {} : valueWith(below, olds[index] ?? null)]),
  );
}
