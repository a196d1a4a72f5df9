/** Formats inspection events as lines, to compare the events of a run with those of XState actors. */
import type { InspectionEvent } from "xstate";

type Ref = { readonly id?: string; readonly sessionId: string; readonly _parent?: unknown };

/** Name of an actor; the root actor of XState has only its session id. */
function getActorName(ref: unknown): string {
  const { id = "?", _parent } = ref as Ref;
  return _parent === undefined ? "root" : id;
}

/** Formats an event: type, actor, content and field names. */
export function formatEvent(event: InspectionEvent): string {
  const parts = [event.type, getActorName(event.actorRef)];
  if ("event" in event) parts.push(event.event.type);
  if (event.type === "@xstate.event")
    parts.push(`from ${event.sourceRef === undefined ? "outside" : getActorName(event.sourceRef)}`);
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

/** Groups lines by actor, in order. */
export function groupByActor(lines: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const groups: Record<string, string[]> = {};
  for (const line of lines) {
    const actor = line.split(" ")[1] ?? "";
    groups[actor] = [...(groups[actor] ?? []), line];
  }
  return groups;
}
