/** Run rows, and the run fields of events and results. */

import type { World } from "../../base/world.ts";
import type { RunRow, RunStatus } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { OpenInterrupt, RunEventBody } from "../events/run-event.ts";
import type { RunResultBase } from "./options/options.ts";
import { toPublicState } from "./output.ts";
import type { Journal } from "./parts/journal.ts";
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

/** Returns the fields of the event `run.started`. */
export function toRunStarted(
  position: Position,
  journal: Journal,
): Omit<Extract<RunEventBody, { readonly type: "run.started" }>, "type"> {
  const { run, plan } = position;
  const { saved } = journal;
  const before = saved?.claim.writtenBy;
  const isOtherVersion = before !== undefined && (before.version !== plan.graph.version || before.shape !== plan.shape);
  return {
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    graph: run.graph,
    attempt: run.attempt,
    recovered: saved?.claim.recovered === true || saved?.claim.run?.status === "running",
    ...(isOtherVersion ? { writtenBy: { version: before.version, shape: before.shape } } : {}),
  };
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
