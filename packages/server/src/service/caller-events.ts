/** Events as callers see them: without private channels, without what failures tell, and with the ids of the caller. */
import type { ErrorRecord, Graph, RunEvent } from "@statewright/core";
import { toPublicEvent } from "@statewright/core/inspect";
import type { CallerScope } from "./caller-scope.ts";
import { toFailureView } from "./views.ts";

/**
 * Returns an event of a thread, named as the caller knows it, as the caller may see it; undefined for an event that the option `redact` leaves out, or for which
 * it throws.
 */
export function toCallerEvent(scope: CallerScope, graph: Graph, thread: string, event: RunEvent): RunEvent | undefined {
  const shown = hideFailure(scope, hideThread(thread, toPublicEvent(graph, event)));
  const { redact } = scope.options;
  if (redact === undefined) return shown;
  try {
    return redact(shown, scope.caller);
  } catch (error) {
    scope.world.log("error", "an event was left out: the option redact threw", { type: event.type, error });
    return undefined;
  }
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
