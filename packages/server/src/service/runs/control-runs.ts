/** Acts that stop, steer, list and await runs. */
import { cancelRun, isStatewrightError, type Message, pauseRun, StatewrightError, steer } from "@statewright/core";
import { listRuns } from "@statewright/core/inspect";
import type { RunRow } from "@statewright/core/store";
import type { CallerScope, OwnThread } from "../caller-scope.ts";
import type { CallerService, CancelRequest, RunView } from "../caller-service.ts";
import type { Cursors } from "../cursors.ts";
import { findRunRow } from "../find-run-row.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { loadPage } from "../pages.ts";
import { createNothingToDoProblem } from "../service-problems.ts";
import { statusTable } from "../status-table.ts";
import { createUnknownRunError } from "../thread-ids.ts";
import { findSeqBeforeStart } from "../thread-timeline.ts";
import { toRunView } from "../views.ts";
import { waitForHint } from "../wait-for-hint.ts";
import { findOwnRun } from "./own-runs.ts";

type ControlActs = "cancelRun" | "pauseRun" | "sendMessage" | "listRuns" | "getRun" | "findRunStart" | "waitForRun";

/** Creates the acts that stop, steer, list and await runs of a caller. */
export function createControlActs(scope: CallerScope, cursors: Cursors): Pick<CallerService, ControlActs> {
  const { store } = scope;
  return {
    cancelRun: (thread, request) => stopRun(scope, thread, request, cancelRun),
    pauseRun: (thread, request) => stopRun(scope, thread, request, pauseRun),
    sendMessage: async (thread, { id, kind, messages, branch }) => {
      const own = await scope.requireThread(thread, { action: "run.start", changes: true });
      const graph = scope.requireGraph(own.row.graph ?? "");
      const { world, codec } = scope;
      checkFromUser(messages);
      const sent = { store, thread: own.stored, input: messages, kind, world, codec };
      await steer(graph, { ...sent, ...omitUndefined({ branch, id }) });
    },
    listRuns: async (thread, { status, ...page }) => {
      const { stored } = await scope.requireThread(thread, { action: "thread.read" });
      return await loadPage({ scope, cursors }, page, {
        name: `runs ${stored}`,
        load: ({ before, limit }) => listRuns(store, { thread: stored, limit, ...omitUndefined({ before, status }) }),
        getCursor: ({ cursor }) => cursor,
        toItem: (row) => toRunView(scope, row),
      });
    },
    getRun: async (run) => toRunView(scope, (await scope.requireRun(run)).row),
    findRunStart: async (run) => {
      const { thread } = await scope.requireRun(run);
      return await findSeqBeforeStart(scope, scope.toStoredId(thread), run);
    },
    waitForRun: async (run, signal) => {
      const { row, thread } = await scope.requireRun(run);
      return await waitForRun(scope, { stored: scope.toStoredId(thread), row, signal });
    },
  };
}

/** Throws `invalid_input` for messages of others than the user: a caller cannot speak for the system or the model. */
function checkFromUser(messages: readonly Message[]): void {
  const other = messages.find(({ role }) => role !== "user");
  if (other === undefined && messages.length > 0) return;
  throw new StatewrightError("invalid_input", {
    what: `sendMessage: expected messages with the role user, got ${other === undefined ? "none" : `one with the role ${JSON.stringify(other.role)}`}`,
    next: "Send messages of the user only",
  });
}

/** Cancels or pauses a run of a thread. Throws the problem `nothing_to_do` for a thread without an unfinished run. */
async function stopRun(
  scope: CallerScope,
  thread: string,
  { run, branch, reason }: CancelRequest,
  stop: typeof cancelRun,
): Promise<RunView> {
  const own = await scope.requireThread(thread, { action: "run.cancel", run, changes: true });
  const { store, world, codec, caller } = scope;
  try {
    const options = { thread: own.stored, run, branch, reason, by: caller.id, world, codec };
    const stopped = await stop(store, options);
    return toRunView(scope, await requireRunRow(scope, own, stopped.run));
  } catch (error) {
    if (run === undefined && isStatewrightError(error, "unknown_run"))
      throw createNothingToDoProblem("No run of the thread is at work or queued.");
    throw error;
  }
}

async function requireRunRow({ store }: CallerScope, { stored }: Pick<OwnThread, "stored">, run: string) {
  const row = await findRunRow(store, stored, run);
  if (row === undefined) throw createUnknownRunError(run);
  return row;
}

/**
 * Shortest and longest time between two reads of a row without a hint, in milliseconds. A write that began before the
 * watch has no hint, so that the first reads follow soon.
 */
const [firstPollMs, maxPollMs] = [20, 500];

/** Resolves when the run neither works nor waits for its turn, or when the signal fires. */
async function waitForRun(
  scope: CallerScope,
  { stored, row: read, signal }: { readonly stored: string; readonly row: RunRow; readonly signal: AbortSignal },
): Promise<RunView> {
  const { engine } = scope.options;
  const hints = waitForHint(scope, stored, signal);
  try {
    for (let pollMs = firstPollMs, row = read; ; pollMs = Math.min(2 * pollMs, maxPollMs)) {
      const rest = findOwnRun(engine, row.id);
      const hint = rest === undefined ? hints.next(pollMs) : hints.next(maxPollMs, rest);
      // The end of a run at work in another process may have come between the first read and the watch.
      if (rest === undefined) row = await requireRunRow(scope, { stored }, row.id);
      if (statusTable[row.status].isResting || signal.aborted) return toRunView(scope, row);
      await hint;
      if (rest !== undefined) row = await requireRunRow(scope, { stored }, row.id);
    }
  } finally {
    hints.stop();
  }
}
