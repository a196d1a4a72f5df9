/**
 * Graphs that are kept across calls, when the run that called them ends before its time: their lines outlive the run, so
 * each gets a last checkpoint of its own, from which its next call goes on.
 */
import type { CheckpointSource, Control } from "../../checkpoint/checkpoint.ts";
import { planOf } from "../../compile/plan.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { Delta } from "../../state/delta.ts";
import type { State } from "../session/returns.ts";
import { emit, type Saved, type Session } from "../session/session.ts";
import { nextPlace, save } from "../superstep/commit.ts";
import { lineBelow, loadInner } from "../task/inner-run.ts";

/** What a run that ends leaves on one of its lines. */
export interface Ended {
  readonly state: State;
  readonly deltas: Readonly<Record<string, Delta>>;
  readonly longTerm?: readonly LongTermChange[] | undefined;
}

/** Says what is to be left of a graph inside, as its line has it; nothing where it may stay as it is. */
type EndOf = (inner: Session, saved: Saved) => Promise<Ended | undefined>;

/**
 * End what is kept inside, at every depth; `looks` only asks what would be left, and writes nothing. Made once more after a
 * crash in its middle, it finds nothing left to do on what is done.
 */
export async function endKept(
  session: Session,
  source: CheckpointSource,
  endOf: EndOf,
  how: "writes" | "looks" = "writes",
): Promise<void> {
  for (const { name, subgraph } of session.plan.nodes.values()) {
    if (subgraph?.persistence !== "kept" || session.saved === undefined) continue;
    const line = `${session.line}/${name}`;
    const head = await session.saved.store.head(session.run.thread, line);
    if (head === undefined || head.branch !== line) continue;
    const plan = planOf(subgraph.graph);
    const standing = await loadInner(session, line, name, plan, "kept");
    const inner: Session = { ...session, ...standing, plan, line, within: withinOf(session, name, plan) };
    await endKept(inner, source, endOf, how);
    const ended = await endOf(inner, standing.saved as Saved);
    if (ended !== undefined && how === "writes") await commitEnded(inner, standing.saved as Saved, source, ended);
  }
}

/** As if a last call had ended it: no task of its caller has that id, so that none takes it for its own. */
function withinOf(session: Session, name: string, { graph }: Session["plan"]): NonNullable<Session["within"]> {
  const { within, step, abort, saved } = session;
  const task = `${step}:end`;
  const path = [...(within?.path ?? []), name];
  return {
    path,
    id: lineBelow(session, name),
    ids: `${within?.ids ?? ""}${task}/`,
    step: within?.step ?? step,
    task: within?.task ?? task,
    caller: { task, checkpoint: saved?.parent, within: path.join("."), graph: graph.name },
    unsaved: false,
    depth: within?.depth ?? 0,
    abort: within?.abort ?? abort,
    endedBy: () => within?.abort ?? abort,
  };
}

/** Nothing of the call is under way any more; the thread stays with whoever has it. */
async function commitEnded(inner: Session, saved: Saved, source: CheckpointSource, ended: Ended): Promise<void> {
  const { caller } = inner.within as NonNullable<Session["within"]>;
  const control: Control = { machine: null, tasks: [], inputs: [], joins: {}, steps: 0, caller };
  inner.sequence.nextSeq = saved.thread.durableSeq + 1;
  const { row, place } = await save(inner, saved, ended, control, {
    nodes: [],
    source,
    durationMs: 0,
    longTerm: ended.longTerm,
    number: () => ({ place: nextPlace(inner) }),
  });
  const { id: checkpoint, step, bytes } = row;
  const changes = inner.mask.hideUncommon(ended.deltas);
  emit(inner, { type: "step.committed", step, checkpoint, nodes: [], next: [], changes, bytes, durationMs: 0 }, place);
}
