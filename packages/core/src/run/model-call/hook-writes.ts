/** Channel writes of hooks, committed with their task before or after the return value of its body. */

import { StatewrightError } from "../../base/errors.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Codec } from "../../state/codec.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { createIdempotencyKey } from "../journal/journal.ts";
import type { Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { assignMessageIds, reduceEdit } from "../session/reduce-writes.ts";
import { checkDeclaredWrites, readUpdate, type State, type TaskOutcome, type Write } from "../session/returns.ts";
import type { HookWrites, TaskScope } from "../session/scope.ts";
import { validateWrites } from "../session/validate-writes.ts";

/**
 * Parses the update of a hook. Throws `unknown_channel`, `undeclared_write`, `invalid_update` or `unencodable_value`,
 * each with the name of the middleware.
 */
export function readHookWrites(
  position: Position,
  { task, node }: TaskScope,
  { name }: Middleware,
  { codec, update }: { readonly codec: Codec; readonly update: unknown },
): readonly Write[] {
  const { plan } = position;
  const who = `the middleware "${name}"`;
  const place = createIdempotencyKey(position, task, name);
  const writes = assignMessageIds(plan, readUpdate(plan, task.node, update, who), place);
  refuseUntracked(plan, task.node, writes, who);
  const listed = node.policy.writes;
  if (listed !== undefined)
    checkDeclaredWrites(plan, task.node, listed, { writes, author: `${who} of the node "${task.node}"` });
  validateWrites(plan, codec, writes, { label: `what ${who} wrote to`, node: task.node });
  return writes;
}

/** Throws for an untracked channel: a replay applies recorded writes, and untracked channels are never recorded. */
function refuseUntracked({ graph }: Plan, node: string, writes: readonly Write[], who: string): void {
  const untracked = writes.find(({ channel }) => graph.state.channels[channel]?.kind === "untracked");
  if (untracked === undefined) return;
  throw new StatewrightError("invalid_update", {
    what: `${who} wrote the channel "${untracked.channel}" of graph "${graph.name}", which is untracked`,
    next: "Write it in a node, or use a channel that is saved",
    place: { graph: graph.name, node, channel: untracked.channel },
  });
}

/** Adds and returns an empty list for the writes of a new model call. */
export function addWriteList(scope: TaskScope): Write[] {
  const list: Write[] = [];
  getHookWrites(scope).before.push(list);
  return list;
}

/** Returns the writes applied after the return value of the body. */
export function getLateWrites(scope: TaskScope): Write[] {
  return getHookWrites(scope).after;
}

function getHookWrites(scope: TaskScope): HookWrites {
  scope.hookWrites ??= { before: [], after: [] };
  return scope.hookWrites;
}

/** Returns the state with the writes of the task's hooks and more writes applied. */
export function applyHookWrites(
  { plan }: Position,
  { state }: Progress,
  { hookWrites }: TaskScope,
  more: readonly Write[],
): State {
  const writes = hookWrites === undefined ? more : [...hookWrites.before.flat(), ...hookWrites.after, ...more];
  return writes.length === 0 ? state : reduceEdit(plan, state, writes).state;
}

/** Adds the writes of the hooks to the outcome of a task. */
export function addHookWrites(outcome: TaskOutcome, { hookWrites }: TaskScope): TaskOutcome {
  if (hookWrites === undefined) return outcome;
  return { ...outcome, writes: [...hookWrites.before.flat(), ...outcome.writes, ...hookWrites.after] };
}
