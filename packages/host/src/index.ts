/** Statewright host: files and child processes of Node behind a single interface. */

export { getCompleteUtf8Length } from "./capture.ts";
export type { EnvironmentOptions } from "./environment.ts";
export { expandVariables } from "./expand-variables.ts";
export {
  type FetchOptions,
  type FetchResult,
  fetchUrl,
  type OpenedUrl,
  type OpenOptions,
  openUrl,
} from "./fetch-url.ts";
export type { FileKind } from "./file-kind.ts";
export { createGlobMatcher } from "./glob.ts";
export { handleTermination } from "./handle-termination.ts";
export { HostError, type HostErrorCode, type HostErrorDetails, isHostError } from "./host-error.ts";
export { type HttpHandler, type HttpPeer, type HttpServer, type ServeHttpOptions, serveHttp } from "./http-server.ts";
export { createLineReader, type LineReader } from "./line-reader.ts";
export type { Listing, ListOptions } from "./list-folder.ts";
export {
  type OutputStream,
  type ProcessOptions,
  type RunningProcess,
  runProcess,
  type StartOptions,
  startProcess,
} from "./process.ts";
export { killProcessGroup, type ProcessGroup } from "./process-group.ts";
export type { ProcessResult } from "./process-result.ts";
export { isPublicAddress } from "./public-address.ts";
export type { PageLine, PageOptions, PageResult } from "./read-page.ts";
export { resolvePathInside, resolveRealPathInside } from "./resolve-path-inside.ts";
export {
  createSupervisor,
  createUntrustedError,
  type StartCheck,
  type SupervisedResource,
  type Supervisor,
  type SupervisorOptions,
} from "./supervisor.ts";
export { type WatchOptions, watchFile } from "./watch-file.ts";
export {
  type FileStat,
  type ReadOptions,
  type ReadResult,
  type Workspace,
  workspace,
} from "./workspace.ts";
export type { WriteResult } from "./write-file.ts";
