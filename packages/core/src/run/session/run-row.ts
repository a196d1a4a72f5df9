/** Run rows, the run fields of events and results, and the public state and output of a run. */

import { checkSyncResult } from "../../base/async-schema.ts";
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import type { World } from "../../base/world.ts";
import type { RunRow, RunStatus } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import type { OpenInterrupt } from "../events/run-event.ts";
import type { RunResultBase } from "./options/options.ts";
import type { Persistence } from "./parts/persistence.ts";
import type { Position } from "./parts/position.ts";
import type { State } from "./returns.ts";
import type { Session } from "./session.ts";

/** Returns the row of the run with its new status; adds `endedAt` unless the run waits or is paused. */
export function toRunRow(position: Position, world: World, status: RunStatus): RunRow {
  const { run } = position;
  const isResumable = status === "waiting" || status === "paused";
  return isResumable ? { ...run, status } : { ...run, status, endedAt: world.clock.now() };
}

/** Returns the fields common to all results of a run. */
export function toResultBase(session: Pick<Session, "position" | "progress" | "journal">): RunResultBase<State> {
  return {
    run: session.position.run.id,
    thread: session.position.run.thread,
    branch: session.position.run.branch,
    state: toPublicState(session.position.plan, session.progress.state),
    steps: session.position.stepsOfRun,
    bytes: session.journal.saved?.thread.bytes ?? 0,
  };
}

/** Returns an interrupt in its public form. */
export function toOpenInterrupt(saved: Pick<Persistence, "codec">, row: InterruptRow): OpenInterrupt {
  const { id, key, node, schema, expiresAt } = row;
  const payload = saved.codec.decode(row.payload);
  return { id, key, node, payload, schema, ...(expiresAt === undefined ? {} : { expiresAt }) };
}

/** Returns the state without private channels. */
export function toPublicState({ graph }: Plan, state: State): State {
  if (graph.private.size === 0) return state;
  return Object.freeze(Object.fromEntries(Object.entries(state).filter(([name]) => !graph.private.has(name))));
}

/**
 * Returns the output of a finished run: the public state, parsed with the output schema if there is one. Throws
 * `invalid_output`.
 */
export function readOutput(plan: Plan, state: State): unknown {
  const { name, output } = plan.graph;
  const publicState = toPublicState(plan, state);
  if (output === undefined) return publicState;
  const parsed = parseWith(output, publicState);
  if (parsed.ok) return deepFreeze(parsed.value);
  checkSyncResult(parsed, `the output of graph "${name}"`, { graph: name });
  throw new StatewrightError("invalid_output", {
    what: `the final state of graph "${name}" does not match its output schema: ${describeIssues(parsed.issues)}`,
    next: "Fix the final state or change the output schema, then resume the thread",
    place: { graph: name },
    details: parsed.issues,
  });
}
