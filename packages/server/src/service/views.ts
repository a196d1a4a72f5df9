/** Rows of the store as callers see them. */
import type { ErrorRecord } from "@statewright/core";
import type { RunRow, ThreadRow } from "@statewright/core/store";
import type { CallerScope } from "./caller-scope.ts";
import type { RunView, ThreadView } from "./caller-service.ts";
import { findFailureTitle } from "./failure-titles.ts";
import { omitUndefined } from "./omit-undefined.ts";

/** Returns a thread as its caller sees it. */
export function toThreadView(scope: CallerScope, row: ThreadRow): ThreadView {
  const { graph, status, title, metadata = {}, headBranch, owner, createdAt, updatedAt } = row;
  return {
    id: scope.toWireId(row.id),
    ...omitUndefined({ graph, status, title }),
    metadata,
    branch: headBranch,
    ...omitUndefined({ owner }),
    createdAt,
    updatedAt,
  };
}

/** Returns a run as its caller sees it. */
export function toRunView(scope: CallerScope, row: RunRow): RunView {
  const { id, branch, graph, status, attempt, metadata = {}, owner, startedAt, endedAt, error } = row;
  return {
    ...{ id, thread: scope.toWireId(row.thread), branch, graph, status, attempt, metadata },
    ...omitUndefined({ owner }),
    createdAt: row.queuedAt ?? startedAt,
    ...omitUndefined({ endedAt }),
    ...(error !== undefined && hasFailed(row) ? { error: toFailureView(scope, error) } : {}),
  };
}

/** True for a run whose error is a failure. The error of a paused run is the reason of the pause. */
function hasFailed({ status }: RunRow): boolean {
  return status === "failed" || status === "parked";
}

/** Code and title of a failure; with `exposeErrors` the message in place of the title. */
export function toFailureView(
  { options }: CallerScope,
  { code, message }: ErrorRecord,
): { readonly code: string; readonly title: string } {
  const title = code === undefined ? undefined : findFailureTitle(code);
  const shown =
    code === undefined || title === undefined ? { code: "node_failed", title: "The run failed." } : { code, title };
  return options.exposeErrors === true ? { ...shown, title: message } : shown;
}
