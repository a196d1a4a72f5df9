/** Inspection events as lines, so that those of a run and those of XState's own actors can stand side by side. */
import type { InspectionEvent } from "xstate";

type Ref = { readonly id?: string; readonly sessionId: string; readonly _parent?: unknown };

/** The name of an actor; XState gives the first one none but its session's. */
function nameOf(ref: unknown): string {
  const { id = "?", _parent } = ref as Ref;
  return _parent === undefined ? "root" : id;
}

/** What an event says: its type, its actor, what happened, and which fields it has. */
export function lineOf(event: InspectionEvent): string {
  const parts = [event.type, nameOf(event.actorRef)];
  if ("event" in event) parts.push(event.event.type);
  if (event.type === "@xstate.event")
    parts.push(`from ${event.sourceRef === undefined ? "outside" : nameOf(event.sourceRef)}`);
  if (event.type === "@xstate.action") parts.push(event.action.type);
  if (event.type === "@xstate.microstep")
    parts.push(
      event._transitions.map(({ eventType, target }) => `${eventType} → ${target?.map(({ key }) => key)}`).join(),
    );
  if ("snapshot" in event) {
    const { status, value } = event.snapshot as { readonly status: string; readonly value?: unknown };
    parts.push(status, JSON.stringify(value));
  }
  return `${parts.join(" ")} {${Object.keys(event).sort().join()}}`;
}

/** The lines about each actor, in their order. */
export function byActor(lines: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const groups: Record<string, string[]> = {};
  for (const line of lines) {
    const actor = line.split(" ")[1] ?? "";
    groups[actor] = [...(groups[actor] ?? []), line];
  }
  return groups;
}
