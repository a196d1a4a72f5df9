/** What rows, events and results say of a run. */
import type { RunRow, RunStatus } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { OpenInterrupt } from "../events/events.ts";
import { shownState } from "./output.ts";
import type { State } from "./returns.ts";
import type { Saved, Session } from "./session.ts";

/** The row of the run as it ends. */
export function runRow(session: Session, status: RunStatus): RunRow {
  const { run } = session;
  const goesOn = status === "waiting" || status === "paused";
  return goesOn ? { ...run, status } : { ...run, status, endedAt: session.world.clock.now() };
}

/** What `run.started` says. */
export function startOf(session: Session): {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly attempt: number;
  readonly recovered: boolean;
  readonly writtenBy?: { readonly version: number; readonly shape: string };
} {
  const { run, saved, plan } = session;
  const before = saved?.claim.writtenBy;
  const isOther = before !== undefined && (before.version !== plan.graph.version || before.shape !== plan.shape);
  return {
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    graph: run.graph,
    attempt: run.attempt,
    recovered: saved?.claim.recovered === true || saved?.claim.run?.status === "running",
    ...(isOther ? { writtenBy: { version: before.version, shape: before.shape } } : {}),
  };
}

/** What every result of a run says. */
export function endOf(session: Session): {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly state: State;
  readonly steps: number;
  readonly bytes: number;
} {
  return {
    run: session.run.id,
    thread: session.run.thread,
    branch: session.run.branch,
    state: shownState(session.plan, session.state),
    steps: session.stepsOfRun,
    bytes: session.saved?.thread.bytes ?? 0,
  };
}

/** A question as the caller sees it. */
export function openInterrupt(saved: Pick<Saved, "codec">, row: InterruptRow): OpenInterrupt {
  const { id, key, node, schema, expiresAt } = row;
  const payload = saved.codec.decode(row.payload);
  return { id, key, node, payload, schema, ...(expiresAt === undefined ? {} : { expiresAt }) };
}
