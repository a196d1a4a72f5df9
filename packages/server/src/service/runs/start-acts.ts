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
    // Two answers of one interrupt: the second finds the first.
    answer: (thread, request) => locks(scope.toStoredId(thread), () => answerRun(scope, thread, request)),
    resumeRun: (thread, request) => resumeRun(scope, thread, request),
  };
}
