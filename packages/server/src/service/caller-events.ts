/** Events as callers see them: without private channels, without what failures tell, and with the ids of the caller. */
import type { ErrorRecord, Graph, RunEvent } from "@statewright/core";
import { toPublicEvent } from "@statewright/core/inspect";
import type { CallerScope } from "./caller-scope.ts";
import { toFailureView } from "./views.ts";

/**
 * Returns an event of a thread, named as the caller knows it, as the caller may see it; undefined for an event that the
 * option `redact` leaves out. Throws what `redact` throws.
 */
export function toCallerEvent(
  scope: CallerScope,
  graph: Graph | undefined,
  thread: string,
  event: RunEvent,
): RunEvent | undefined {
  const shown = hideFailure(scope, hideThread(thread, hideChannels(graph, event)));
  const { redact } = scope.options;
  return redact === undefined ? shown : redact(shown, scope.caller);
}

/** Removes the changes of private channels; before the first run of a thread there is no graph, and no change. */
function hideChannels(graph: Graph | undefined, event: RunEvent): RunEvent {
  if (graph !== undefined) return toPublicEvent(graph, event);
  return event.type === "step.committed" || event.type === "transition.taken" ? { ...event, changes: {} } : event;
}

/** Replaces the id of the thread: in the events of a copy it is that of the original. */
function hideThread(thread: string, event: RunEvent): RunEvent {
  return event.type === "run.started" || event.type === "run.queued" ? { ...event, thread } : event;
}

/** Replaces the errors of an event by their code and title, unless the option `exposeErrors` is set. */
function hideFailure(scope: CallerScope, event: RunEvent): RunEvent {
  const hide = (record: ErrorRecord): ErrorRecord => {
    const { code, title } = toFailureView(scope, record);
    return { name: "StatewrightError", message: scope.removePrefix(title), code };
  };
  switch (event.type) {
    case "run.failed":
    case "inbox.failed":
    case "event.refused":
    case "task.failed":
    case "task.handled":
    case "task.retried":
    case "model.retried":
      return { ...event, error: hide(event.error) };
    case "run.paused":
      return { ...event, cause: hide(event.cause) };
    case "tool.retried":
    case "tool.artifact_lost":
      return scope.options.exposeErrors === true ? event : { ...event, error: "" };
    default:
      return event;
  }
}
