/** Compatibility check of a user-written machine: its state, its actors and its timers. Pure, like the check of graphs. */
import type { AnyStateNode } from "xstate";
import { describeThrown, getErrorFact, isStatewrightError } from "../../base/errors.ts";
import { getDefinition, restoreActorTree } from "../kernel/actor-tree.ts";
import type { Incompatibility } from "../migration/compatibility.ts";
import type { ThreadSnapshot } from "../migration/thread-snapshot.ts";

/** Matches the id that XState generates for an actor of a state without an explicit id. */
const generatedIdPattern = /^\d+\./;

/**
 * Returns true when the id of an actor was generated from a state that no longer invokes the actor, e.g. a renamed
 * state.
 */
export function isFromRemovedState(root: AnyStateNode, id: string): boolean {
  return generatedIdPattern.test(id) && !hasInvoke(root, id);
}

function hasInvoke(state: AnyStateNode, id: string): boolean {
  return (
    state.invoke.some((invoke) => invoke.id === id) || Object.values(state.states).some((each) => hasInvoke(each, id))
  );
}

/** Finds the incompatibilities of the thread of a user-written machine. */
export function findMachineIncompatibilities({ plan, state, control }: ThreadSnapshot): readonly Incompatibility[] {
  const machine = getDefinition(plan);
  if (control.machine === null || control.tasks.length === 0) return [];
  const createIncompatibility = (what: string): readonly Incompatibility[] => [{ kind: "machine", what }];
  try {
    const { machines } = restoreActorTree(machine, state as Parameters<typeof restoreActorTree>[1], control);
    const { timers = [], children = [] } = control.pending ?? {};
    const orphanId = children.find((id) => isFromRemovedState(machine.machine.root, id));
    if (orphanId !== undefined)
      return createIncompatibility(
        `the actor "${orphanId}" is running, but no state of the machine invokes an actor with that id`,
      );
    return timers.flatMap(({ to, event }) => {
      const events: readonly string[] = machines.get(to)?.definition.machine.events ?? [];
      if (events.includes(event.type)) return [];
      return createIncompatibility(`a timer for "${event.type}" is pending, but the machine has no such event`);
    });
  } catch (error) {
    return createIncompatibility(isStatewrightError(error) ? getErrorFact(error) : describeThrown(error));
  }
}
