/**
 * Temporary files that are renamed to their target when complete. Several files for a single target can be in progress,
 * also in worker threads of a process.
 */
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { threadId } from "node:worker_threads";
import { listNames } from "../rows/list-names.ts";
import { discard } from "./discard.ts";

const activePaths: Set<string> = new Set();
let counter = 0;

/** Returns a new temporary path for `target`. */
export function createTempPath(target: string): string {
  const tempPath = `${target}-partial-${process.pid}-${threadId}-${++counter}`;
  activePaths.add(tempPath);
  return tempPath;
}

/** Marks a temporary path as finished or abandoned. */
export function releaseTempPath(tempPath: string): void {
  activePaths.delete(tempPath);
}

/**
 * Removes temporary files of dead processes for `target`; `names` are those in its folder. In a container, a former
 * process can have the pid of this one.
 */
export function removeStaleTempFiles(target: string, names: readonly string[] = listNames(dirname(target))): void {
  const folder = dirname(target);
  const start = `${basename(target)}-partial-`;
  for (const name of names) {
    if (!name.startsWith(start)) continue;
    const [, suffix, pid, thread] = /^((\d+)-(\d+)-\d+)(-wal|-shm|-journal)?$/.exec(name.slice(start.length)) ?? [];
    if (pid === undefined) continue;
    const isOwnThread = Number(pid) === process.pid && Number(thread) === threadId;
    const isStale = isOwnThread ? !activePaths.has(`${target}-partial-${suffix}`) : !isProcessRunning(Number(pid));
    if (isStale) discard(join(folder, name));
  }
}

function isProcessRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return !(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH");
  }
}
