/** Kinds of files, and the error for special files. */
import { formatPath } from "./format-path.ts";
import { HostError } from "./host-error.ts";

/** Kind of a file after resolving links. */
export type FileKind = "file" | "folder" | "other";

/** Returns the kind of a file or directory entry. */
export function getFileKind(entry: { isFile(): boolean; isDirectory(): boolean }): FileKind {
  if (entry.isFile()) return "file";
  return entry.isDirectory() ? "folder" : "other";
}

/** Creates the error of reading or writing a special file. */
export function createNotAFileError(verb: "read" | "write", path: string): HostError {
  const reason = "the path is a device, a pipe or a socket. Pass the path of a file.";
  return new HostError("io", `Cannot ${verb} ${formatPath(path)}: ${reason}`);
}
