/** What hooks write to channels: it goes with the task that they stand around, before or after what its body returns. */
import { StatewrightError } from "../../base/errors.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { foldEdit } from "../superstep/superstep.ts";
import { readUpdate, refuseUnlisted, type State, type TaskOutcome, type Write } from "./returns.ts";
import type { TaskScope } from "./scope.ts";
import type { Session } from "./session.ts";
import { admitWrites } from "./validate-writes.ts";

/** What the hooks of a task have written. */
export interface HookWrites {
  /** Folded before what the body returns; a list for each model call, in the order in which they began. */
  readonly before: Write[][];
  /** Folded after it. */
  readonly after: Write[];
}

/** Parse what a hook writes. Throws `unknown_channel`, `undeclared_write`, `invalid_update` or `unencodable_value`, each naming the middleware. */
export function readHookWrites(
  { plan, codec }: Session,
  { task, node }: TaskScope,
  { name }: Middleware,
  update: unknown,
): readonly Write[] {
  const who = `the middleware "${name}"`;
  const writes = readUpdate(plan, task.node, update, who);
  refuseUntracked(plan, task.node, writes, who);
  const listed = node.policy.writes;
  if (listed !== undefined) refuseUnlisted(plan, task.node, listed, writes, `${who} of the node "${task.node}"`);
  admitWrites(plan, codec, writes, `what ${who} wrote to`, task.node);
  return writes;
}

/** A replay writes what was recorded, and such a channel is never recorded. */
function refuseUntracked({ graph }: Plan, node: string, writes: readonly Write[], who: string): void {
  const lost = writes.find(({ channel }) => graph.state.channels[channel]?.kind === "untracked");
  if (lost === undefined) return;
  throw new StatewrightError("invalid_update", {
    what: `${who} wrote the channel "${lost.channel}" of graph "${graph.name}", which lives in the process only`,
    next: "Write it in a node, or make it a channel that is saved",
    place: { graph: graph.name, node, channel: lost.channel },
  });
}

/** A place for the writes of a model call that begins now. */
export function placeForWrites(scope: TaskScope): Write[] {
  const place: Write[] = [];
  writesOf(scope).before.push(place);
  return place;
}

/** The writes that come after what the body returns. */
export function lateWrites(scope: TaskScope): Write[] {
  return writesOf(scope).after;
}

function writesOf(scope: TaskScope): HookWrites {
  scope.written ??= { before: [], after: [] };
  return scope.written;
}

/** The state as the hooks of a task have written it, with more writes on top. */
export function stateAsWritten({ plan, state }: Session, { written }: TaskScope, more: readonly Write[]): State {
  const writes = written === undefined ? more : [...written.before.flat(), ...written.after, ...more];
  return writes.length === 0 ? state : foldEdit(plan, state, writes).state;
}

/** The outcome of a task with what its hooks have written. */
export function withHookWrites(outcome: TaskOutcome, { written }: TaskScope): TaskOutcome {
  if (written === undefined) return outcome;
  return { ...outcome, writes: [...written.before.flat(), ...outcome.writes, ...written.after] };
}
