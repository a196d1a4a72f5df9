/** Acts that start and continue runs. */
import type { CallerScope } from "../caller-scope.ts";
import type { CallerService } from "../caller-service.ts";
import type { ThreadLocks } from "../thread-locks.ts";
import { answerRun } from "./answer-run.ts";
import { resumeRun } from "./resume-run.ts";
import { startRun } from "./start-run.ts";

/** Creates the acts that start and continue runs of a caller. */
export function createStartActs(
  scope: CallerScope,
  locks: ThreadLocks,
): Pick<CallerService, "startRun" | "answer" | "resumeRun"> {
  return {
    startRun: (thread, request) => startRun(scope, thread, request),
    // Of two that continue one run, the second finds what the first has saved.
    answer: async (thread, request) => await locks(scope.toStoredId(thread), () => answerRun(scope, thread, request)),
    resumeRun: async (thread, request) =>
      await locks(scope.toStoredId(thread), () => resumeRun(scope, thread, request)),
  };
}
