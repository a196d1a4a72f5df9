/** Reports transitions of a run to its inspector: graphs, their tool calls, and user-written machines. */

import type { AnyEventObject } from "xstate";
import type { Graph } from "../../compile/graph.ts";
import { findSubgraph } from "../../define/inner-graph.ts";
import { isInsideToolCall } from "../conversation/pending-calls.ts";
import type { EventEmitter } from "../events/events.ts";
import type { Actor, ActorEnd, Inspection, LookupByPath } from "../events/inspection.ts";
import { type ActorTree, type MachineTransition, splitAddress } from "../kernel/actor-tree.ts";
import { getMachineKernel } from "../kernel/get-kernel.ts";
import type { Snapshot, Step } from "../kernel/kernel.ts";
import type { Position } from "../session/parts/position.ts";
import type { TaskScope } from "../session/scope.ts";

/** Reports that the machine of a graph applied an event. */
export function inspectTransition(
  position: Position,
  events: EventEmitter,
  from: Snapshot,
  { event, step }: { readonly event: AnyEventObject; readonly step: Step },
): void {
  const { inspection } = events.stream;
  if (inspection === undefined) return;
  const machine = getMachine(inspection, position, from);
  const ended = event.type.startsWith(doneEvent) ? machine.children.get(event.type.slice(doneEvent.length)) : undefined;
  const report = (source: Actor | undefined): void =>
    inspection.transition(machine, event, step, { source, inner: (ids) => getFirstStep(position, ids) });
  if (ended !== undefined && !isMachine(ended)) inspection.end(ended, { output: undefined }, () => report(ended));
  else report(ended ?? findSender(machine, event));
}

const doneEvent = "xstate.done.actor.";

/**
 * Finds the sender of an event that is no actor's end: the last committing actor, or the node that interrupted or
 * failed.
 */
function findSender({ children }: Actor, event: AnyEventObject): Actor | undefined {
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

/**
 * Returns the machine of a session's graph: the root machine of the run, or the actor of the node in the parent
 * graph.
 */
function getMachine(inspection: Inspection, position: Position, from: Snapshot): Actor {
  const { machines } = inspection;
  const { namespace, nesting, plan } = position;
  const known = machines.get(namespace);
  if (known?.snapshot.status === "active") return known;
  const outer = nesting === undefined ? undefined : machines.get(namespace.slice(0, namespace.lastIndexOf("/")));
  const node = nesting?.path[nesting.path.length - 1];
  const child = node === undefined ? undefined : outer?.children.get(node);
  const isAvailable = child !== undefined && isMachine(child) && ![...machines.values()].includes(child);
  // Concurrent calls of a tool are separate actors.
  const isAlone =
    node === undefined || !isInsideToolCall({ withinId: namespace.slice(namespace.lastIndexOf("/") + 1) });
  const machine = isAvailable
    ? child
    : inspection.restore(outer, isAlone ? (node ?? plan.graph.name) : `${node} ${nesting?.id}`, from);
  machines.set(namespace, machine);
  return machine;
}

/** Returns the initial step of the nested graph of a node. */
function getFirstStep({ plan }: Position, [node = "", ...more]: readonly string[]): Step | undefined {
  const inner = more.length > 0 ? undefined : findSubgraph(plan.nodes.get(node))?.graph;
  return inner === undefined ? undefined : getMachineKernel(inner as Graph).enter();
}

/** Reports that the run was cancelled and its machines were stopped. */
export function inspectStop({ namespace }: Position, { stream: { inspection } }: EventEmitter): void {
  const machine = inspection?.machines.get(namespace);
  if (machine !== undefined) inspection?.stop(machine);
}

/**
 * Creates a reporter for the machine of a tool call, an actor below the actor of its node; undefined without an
 * inspector.
 */
export function inspectCall(
  position: Position,
  events: EventEmitter,
  { task }: TaskScope,
  { id, first }: { readonly id: string; readonly first: Step },
): ((event: AnyEventObject, step: Step) => void) | undefined {
  const { inspection } = events.stream;
  if (inspection === undefined) return undefined;
  const parent = inspection.machines.get(position.namespace)?.children.get(task.node);
  const call = inspection.enter(parent, id, first, { input: undefined });
  return (event, step) => inspection.transition(call, event, step);
}

/** Reports that a user-written machine and its child machines were restored. */
export function inspectRestore(
  { namespace, plan }: Position,
  { stream: { inspection } }: EventEmitter,
  motion: ActorTree,
): void {
  if (inspection === undefined || inspection.machines.has(namespace)) return;
  const root = motion.machines.get("")?.snapshot;
  if (root === undefined) return;
  const inner: LookupByPath<Snapshot> = (ids) =>
    [...motion.machines].find(([address]) => isSamePath(splitAddress(address), ids))?.[1].snapshot;
  inspection.machines.set(namespace, inspection.restore(undefined, plan.graph.name, root, inner));
}

/** A finished promise of a machine; `path` are the actor ids from the root. */
export interface FinishedPromise {
  readonly path: readonly string[];
  readonly end: ActorEnd;
}

/** Reports the moves of a turn in order. `finishedPromise` is the promise whose end started the turn. */
export function inspectTurn(
  { namespace, plan }: Position,
  { stream: { inspection } }: EventEmitter,
  moves: readonly MachineTransition[],
  finishedPromise: FinishedPromise | undefined,
): void {
  if (inspection === undefined) return;
  const { machines } = inspection;
  const entries = moves.filter(({ event }) => event.type === "xstate.init");
  /** Removes and returns the entry step of the machine at this path; each entry counts once. */
  const takeEntry: LookupByPath<Step> = (ids) => {
    const index = entries.findIndex(({ path }) => isSamePath(path, ids));
    return index < 0 ? undefined : entries.splice(index, 1)[0]?.step;
  };
  const findActor = (path: readonly string[] | undefined): Actor | undefined =>
    path?.reduce<Actor | undefined>((at, id) => at?.children.get(id), machines.get(namespace));
  const report = ({ path, event, step, source }: MachineTransition): void => {
    const actor = findActor(path);
    if (event.type === "xstate.init" && path.length === 0) {
      const first = takeEntry([]);
      if (first !== undefined)
        machines.set(
          namespace,
          inspection.enter(undefined, plan.graph.name, first, { input: event["input"], inner: takeEntry }),
        );
    } else if (event.type !== "xstate.init" && actor !== undefined)
      inspection.transition(actor, event, step, {
        source: findActor(source),
        inner: (ids) => takeEntry([...path, ...ids]),
      });
  };
  const [first, ...rest] = moves;
  const promise = findActor(finishedPromise?.path);
  if (finishedPromise !== undefined && promise !== undefined && !isMachine(promise))
    inspection.end(promise, finishedPromise.end, () => first && report(first));
  else if (first !== undefined) report(first);
  for (const move of rest) report(move);
}

function isSamePath(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((id, index) => id === right[index]);
}
