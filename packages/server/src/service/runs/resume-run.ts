/** Act that continues a paused, failed or crashed run. */
import type { CheckpointRow, RunRow } from "@statewright/core/store";
import type { CallerScope } from "../caller-scope.ts";
import type { ContinueRequest, StartedRun } from "../caller-service.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { createNothingToDoProblem } from "../service-problems.ts";
import { keepOwnRun } from "./own-runs.ts";
import { createRunContext } from "./run-context.ts";
import { awaitSavedStart } from "./saved-start.ts";
import { checkBranch, findHeadRun, toBreakpoints, toStartedRun } from "./started-run.ts";

/**
 * Continues the newest run of a branch. Resolves when the continuation is saved. Throws the problem `nothing_to_do` when
 * there is none to continue, and the errors of `resume`.
 */
export async function resumeRun(scope: CallerScope, thread: string, request: ContinueRequest): Promise<StartedRun> {
  const own = await scope.requireThread(thread, { action: "run.start", changes: true });
  const graph = scope.requireGraph(own.row.graph ?? "");
  await checkBranch(scope, own, request);
  const branch = request.branch ?? own.row.headBranch;
  const run = await findHeadRun(scope, own, branch);
  const { key } = request;
  if (run !== undefined && key !== undefined && run.resumeKey === key)
    return await toStartedRun(scope, own.stored, { run: run.id, seq: undefined, isNew: false });
  if (run !== undefined && isOver(run, await scope.store.head(own.stored, branch)))
    throw createNothingToDoProblem("No run of the branch is paused, failed or crashed.");
  const context = await createRunContext(scope, { graph, thread, asked: request.asked, run });
  const handle = scope.options.engine.resume(graph, {
    ...context,
    ...{ thread: own.stored, branch, by: scope.caller.id },
    ...omitUndefined({ key }),
    ...toBreakpoints(request.breakpoints),
  });
  const saved = await awaitSavedStart(handle, async () => false);
  if (saved.seq === undefined) throw createNothingToDoProblem("No run of the branch is paused, failed or crashed.");
  keepOwnRun(scope.options.engine, saved.run, handle);
  return await toStartedRun(scope, own.stored, { ...saved, isNew: true });
}

/** True for a run that has ended, on a branch that nobody has forked or changed since. */
function isOver({ status }: RunRow, head: CheckpointRow | undefined): boolean {
  return (status === "done" || status === "cancelled") && head?.source !== "fork" && head?.source !== "update";
}
