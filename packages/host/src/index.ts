/** Statewright host: Node's files and child processes behind one seam. */
export type { EnvironmentOptions } from "./environment.ts";
export {
  type FileStat,
  type Listing,
  type ListOptions,
  type ReadOptions,
  type ReadResult,
  type Workspace,
  type WriteResult,
  workspace,
} from "./files.ts";
export { HostError, type HostErrorCode, type HostErrorDetails, isHostError } from "./host-error.ts";
export {
  type OutputStream,
  type ProcessOptions,
  type ProcessResult,
  type RunningProcess,
  runProcess,
  type StartOptions,
  startProcess,
} from "./process.ts";
export { endGroup, type ProcessGroup } from "./process-group.ts";
