/**
 * Persistent subgraphs of a run that ends early. Their namespaces outlive the run, so each namespace gets a last
 * checkpoint, from which the next call starts.
 */

import type { CheckpointSource, Control } from "../../checkpoint/checkpoint.ts";
import { getPlan } from "../../compile/plan.ts";
import { END } from "../../define/edge.ts";
import { findSubgraph } from "../../define/inner-graph.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { Delta } from "../../state/delta.ts";
import { describeCheckpoint, emit } from "../events/events.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { State } from "../session/returns.ts";
import { createSession, type Session } from "../session/session.ts";
import { allocateEventPlace, saveCheckpoint } from "../superstep/commit.ts";
import { getChildNamespace, loadInner } from "../task/inner-run.ts";

/** Final state of a namespace of a run that ends. */
export interface EndState {
  readonly state: State;
  readonly deltas: Readonly<Record<string, Delta>>;
  readonly longTerm?: readonly LongTermChange[] | undefined;
}

/** Computes the end state of a nested graph; undefined when its namespace may stay unchanged. */
type EndStateResolver = (inner: Session, saved: Persistence) => Promise<EndState | undefined>;

/**
 * Ends the persistent subgraphs of a run at every depth. Mode "dry-run" computes the end states without a write.
 * Idempotent: after a crash, a repeated call skips namespaces that are already finished.
 */
export async function finishPersistentSubgraphs(
  session: Session,
  source: CheckpointSource,
  resolveEndState: EndStateResolver,
  mode: "write" | "dry-run" = "write",
): Promise<void> {
  for (const node of session.position.plan.nodes.values()) {
    const subgraph = findSubgraph(node);
    if (subgraph?.persistence !== "per-thread" || session.journal.saved === undefined) continue;
    const { name } = node;
    const namespace = `${session.position.namespace}/${name}`;
    const head = await session.journal.saved.store.head(session.position.run.thread, namespace);
    if (head === undefined || head.branch !== namespace) continue;
    const plan = getPlan(subgraph.graph);
    const loaded = await loadInner(session.position, session.journal, {
      namespace,
      name,
      plan,
      persistence: "per-thread",
      parents: [],
    });
    const { saved, state, control, step } = loaded;
    const nesting = createEndNesting(session, name, plan);
    const inner = createSession({
      ...session,
      position: { ...session.position, plan, namespace, nesting, step },
      progress: { ...session.progress, state, control, startedAgents: undefined, turns: undefined },
      journal: { saved, longTerm: session.journal.longTerm, outcomes: new Map(), ledger: undefined },
      lineage: { parent: session.lineage.parent, innerSessions: new Map() },
    });
    await finishPersistentSubgraphs(inner, source, resolveEndState, mode);
    const endState = await resolveEndState(inner, loaded.saved as Persistence);
    if (endState !== undefined && mode === "write")
      await commitEndState(inner, loaded.saved as Persistence, source, endState);
  }
}

/**
 * Creates the nesting of a synthetic last call. No task of the parent has this id, so no task claims the call as its
 * own.
 */
function createEndNesting(
  session: Pick<Session, "position" | "journal" | "signals">,
  name: string,
  { graph }: Position["plan"],
): NonNullable<Position["nesting"]> {
  const { nesting, step } = session.position;
  const { saved } = session.journal;
  const { abort } = session.signals;
  const task = `${step}:end`;
  const path = [...(nesting?.path ?? []), name];
  return {
    path,
    id: getChildNamespace(session.position, name),
    idPrefix: `${nesting?.idPrefix ?? ""}${task}/`,
    step: nesting?.step ?? step,
    task: nesting?.task ?? task,
    caller: { task, checkpoint: saved?.parent, nesting: path.join("."), graph: graph.name },
    unsaved: false,
    depth: nesting?.depth ?? 0,
    abort: nesting?.abort ?? abort,
    getHookController: () => nesting?.abort ?? abort,
    updateCall: undefined,
  };
}

/** Commits the end state with an empty control. The claim of the thread is unchanged. */
async function commitEndState(
  inner: Pick<Session, "env" | "position" | "progress" | "events">,
  saved: Persistence,
  source: CheckpointSource,
  endState: EndState,
): Promise<void> {
  const { caller } = inner.position.nesting as NonNullable<Position["nesting"]>;
  const control: Control = { machine: null, tasks: [], inputs: [], joins: {}, steps: 0, caller };
  inner.events.sequence.nextSeq = saved.thread.durableSeq + 1;
  const { row, place } = await saveCheckpoint(inner.position, inner.progress, saved, {
    result: endState,
    control,
    options: {
      nodes: [],
      source,
      durationMs: 0,
      longTerm: endState.longTerm,
      assignNumbers: () => ({ place: allocateEventPlace(inner.events) }),
    },
  });
  const changes = inner.env.redactor.redactUncommon(endState.deltas);
  emit(inner.events, { ...describeCheckpoint(row), nodes: [], next: [END], changes }, place);
}
