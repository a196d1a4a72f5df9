/**
 * Persistent subgraphs of a run that ends early. Their namespaces outlive the run, so each namespace gets a last
 * checkpoint, from which the next call starts.
 */
import type { CheckpointSource, Control } from "../../checkpoint/checkpoint.ts";
import { getPlan } from "../../compile/plan.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { Delta } from "../../state/delta.ts";
import type { State } from "../session/returns.ts";
import { emit, type Persistence, type Session } from "../session/session.ts";
import { allocateEventPlace, saveCheckpoint } from "../superstep/commit.ts";
import { getChildNamespace, loadInner } from "../task/inner-run.ts";

/** Final state of one namespace of a run that ends. */
export interface EndState {
  readonly state: State;
  readonly deltas: Readonly<Record<string, Delta>>;
  readonly longTerm?: readonly LongTermChange[] | undefined;
}

/** Computes the end state of a nested graph; undefined when its namespace may stay unchanged. */
type EndStateResolver = (inner: Session, saved: Persistence) => Promise<EndState | undefined>;

/**
 * Ends the persistent subgraphs of a run at every depth. Mode "looks" computes the end states without a write.
 * Idempotent: after a crash, a repeated call skips namespaces that are already finished.
 */
export async function finishPersistentSubgraphs(
  session: Session,
  source: CheckpointSource,
  resolveEndState: EndStateResolver,
  mode: "writes" | "looks" = "writes",
): Promise<void> {
  for (const { name, subgraph } of session.plan.nodes.values()) {
    if (subgraph?.persistence !== "kept" || session.saved === undefined) continue;
    const line = `${session.namespace}/${name}`;
    const head = await session.saved.store.head(session.run.thread, line);
    if (head === undefined || head.branch !== line) continue;
    const plan = getPlan(subgraph.graph);
    const loaded = await loadInner(session, { namespace: line, name, plan, persistence: "kept", parents: [] });
    const inner: Session = {
      ...session,
      ...loaded,
      plan,
      namespace: line,
      nesting: createEndNesting(session, name, plan),
    };
    await finishPersistentSubgraphs(inner, source, resolveEndState, mode);
    const endState = await resolveEndState(inner, loaded.saved as Persistence);
    if (endState !== undefined && mode === "writes")
      await commitEndState(inner, loaded.saved as Persistence, source, endState);
  }
}

/**
 * Creates the nesting of a synthetic last call. No task of the parent has this id, so no task claims the call as its
 * own.
 */
function createEndNesting(session: Session, name: string, { graph }: Session["plan"]): NonNullable<Session["nesting"]> {
  const { nesting, step, abort, saved } = session;
  const task = `${step}:end`;
  const path = [...(nesting?.path ?? []), name];
  return {
    path,
    id: getChildNamespace(session, name),
    idPrefix: `${nesting?.idPrefix ?? ""}${task}/`,
    step: nesting?.step ?? step,
    task: nesting?.task ?? task,
    caller: { task, checkpoint: saved?.parent, nesting: path.join("."), graph: graph.name },
    unsaved: false,
    depth: nesting?.depth ?? 0,
    abort: nesting?.abort ?? abort,
    getHookController: () => nesting?.abort ?? abort,
  };
}

/** Commits the end state with an empty control. The claim of the thread is unchanged. */
async function commitEndState(
  inner: Session,
  saved: Persistence,
  source: CheckpointSource,
  endState: EndState,
): Promise<void> {
  const { caller } = inner.nesting as NonNullable<Session["nesting"]>;
  const control: Control = { machine: null, tasks: [], inputs: [], joins: {}, steps: 0, caller };
  inner.sequence.nextSeq = saved.thread.durableSeq + 1;
  const { row, place } = await saveCheckpoint(inner, saved, endState, control, {
    nodes: [],
    source,
    durationMs: 0,
    longTerm: endState.longTerm,
    assignNumbers: () => ({ place: allocateEventPlace(inner) }),
  });
  const { id: checkpoint, step, bytes } = row;
  const changes = inner.redactor.redactUncommon(endState.deltas);
  emit(inner, { type: "step.committed", step, checkpoint, nodes: [], next: [], changes, bytes, durationMs: 0 }, place);
}
