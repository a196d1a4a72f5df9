/** What a run tells its inspector, when it has one: transitions of graphs, of their tool calls, and of machines drawn by hand. */
import type { AnyEventObject } from "xstate";
import type { Graph } from "../../compile/define-graph.ts";
import { isWithinCall } from "../conversation/pending-calls.ts";
import { wholeKernelOf } from "../kernel/get-kernel.ts";
import type { Snapshot, Step } from "../kernel/kernel.ts";
import { idsOf, type Motion, type Move } from "../machine/actor-tree.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import type { Actor, ActorEnd, ByIds, Inspection } from "./inspection.ts";

/** The machine of a graph took an event. */
export function inspectTransition(session: Session, from: Snapshot, event: AnyEventObject, step: Step): void {
  const { inspection } = session.events;
  if (inspection === undefined) return;
  const machine = machineOf(inspection, session, from);
  const ended = event.type.startsWith(doneEvent) ? machine.children.get(event.type.slice(doneEvent.length)) : undefined;
  const took = (source: Actor | undefined): void =>
    inspection.took(machine, event, step, source, (ids) => firstStepOf(session, ids));
  if (ended !== undefined && !isMachine(ended)) inspection.ended(ended, { output: undefined }, () => took(ended));
  else took(ended ?? senderOf(machine, event));
}

const doneEvent = "xstate.done.actor.";

/** Who sent an event that no actor's end has made: the last actor that commits, or the node that asks or failed. */
function senderOf({ children }: Actor, event: AnyEventObject): Actor | undefined {
  if (event.type === "step.commit")
    return [...children.values()].findLast(({ view, snapshot }) => isCommit(view.id) && snapshot.status === "active");
  return "node" in event ? children.get(String(event["node"])) : undefined;
}

function isCommit(id: string): boolean {
  return id.endsWith(".commit");
}

function isMachine({ snapshot }: Actor): boolean {
  return "machine" in snapshot;
}

/** The machine of a session's graph: its run's own, or that of the node of the graph around it. */
function machineOf(inspection: Inspection, session: Session, from: Snapshot): Actor {
  const { machines } = inspection;
  const { line, within, plan } = session;
  const known = machines.get(line);
  if (known?.snapshot.status === "active") return known;
  const outer = within === undefined ? undefined : machines.get(line.slice(0, line.lastIndexOf("/")));
  const node = within?.path[within.path.length - 1];
  const made = node === undefined ? undefined : outer?.children.get(node);
  const free = made !== undefined && isMachine(made) && ![...machines.values()].includes(made);
  // Several calls of one tool are at work at a time: each is an actor of its own.
  const isAlone = node === undefined || !isWithinCall({ withinId: line.slice(line.lastIndexOf("/") + 1) });
  const machine = free
    ? made
    : inspection.stands(outer, isAlone ? (node ?? plan.graph.name) : `${node} ${within?.id}`, from);
  machines.set(line, machine);
  return machine;
}

/** How the inner graph of a node is entered. */
function firstStepOf({ plan }: Session, [node = "", ...more]: readonly string[]): Step | undefined {
  const inner = more.length > 0 ? undefined : plan.nodes.get(node)?.subgraph?.graph;
  return inner === undefined ? undefined : wholeKernelOf(inner as Graph).initial();
}

/** The run was cancelled: its machines go no further. */
export function inspectStop({ events: { inspection }, line }: Session): void {
  const machine = inspection?.machines.get(line);
  if (machine !== undefined) inspection?.stopped(machine);
}

/** Tells the steps of a tool call's machine, which is an actor below its node's; undefined without an inspector. */
export function inspectCall(
  session: Session,
  { task }: TaskScope,
  id: string,
  first: Step,
): ((event: AnyEventObject, step: Step) => void) | undefined {
  const { inspection } = session.events;
  if (inspection === undefined) return undefined;
  const parent = inspection.machines.get(session.line)?.children.get(task.node);
  const call = inspection.entered(parent, id, first, undefined);
  return (event, step) => inspection.took(call, event, step);
}

/** A machine drawn by hand, and its child machines, go on where they stood. */
export function inspectStand({ events: { inspection }, line, plan }: Session, motion: Motion): void {
  if (inspection === undefined || inspection.machines.has(line)) return;
  const root = motion.machines.get("")?.snapshot;
  if (root === undefined) return;
  const inner: ByIds<Snapshot> = (ids) =>
    [...motion.machines].find(([address]) => same(idsOf(address), ids))?.[1].snapshot;
  inspection.machines.set(line, inspection.stands(undefined, plan.graph.name, root, inner));
}

/** A promise of a machine that has ended; `path` are the ids that lead to it. */
export interface Settled {
  readonly path: readonly string[];
  readonly end: ActorEnd;
}

/** What a turn has moved, in its order; `settled` is the promise whose end it began with. */
export function inspectTurn(
  { events: { inspection }, line, plan }: Session,
  moves: readonly Move[],
  settled: Settled | undefined,
): void {
  if (inspection === undefined) return;
  const { machines } = inspection;
  const entries = moves.filter(({ event }) => event.type === "xstate.init");
  /** How the machine at these ids was entered in this turn; each entry counts once. */
  const entryOf: ByIds<Step> = (ids) => {
    const index = entries.findIndex(({ path }) => same(path, ids));
    return index < 0 ? undefined : entries.splice(index, 1)[0]?.step;
  };
  const actorAt = (path: readonly string[] | undefined): Actor | undefined =>
    path?.reduce<Actor | undefined>((at, id) => at?.children.get(id), machines.get(line));
  const tell = ({ path, event, step, source }: Move): void => {
    const actor = actorAt(path);
    if (event.type === "xstate.init" && path.length === 0) {
      const first = entryOf([]);
      if (first !== undefined)
        machines.set(line, inspection.entered(undefined, plan.graph.name, first, event["input"], entryOf));
    } else if (event.type !== "xstate.init" && actor !== undefined)
      inspection.took(actor, event, step, actorAt(source), (ids) => entryOf([...path, ...ids]));
  };
  const [first, ...rest] = moves;
  const promise = actorAt(settled?.path);
  if (settled !== undefined && promise !== undefined && !isMachine(promise))
    inspection.ended(promise, settled.end, () => first && tell(first));
  else if (first !== undefined) tell(first);
  for (const move of rest) tell(move);
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id, index) => id === other[index]);
}
