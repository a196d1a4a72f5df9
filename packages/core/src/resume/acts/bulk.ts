/** Acts on many runs or threads by a filter: the public namespace `bulk`. */
export { cancelRuns } from "./cancel-runs.ts";
export { deleteThreads } from "./delete-threads.ts";
export { resumeRuns, retryRuns } from "./resume-runs.ts";
