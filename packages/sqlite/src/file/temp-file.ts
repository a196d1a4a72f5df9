/**
 * Files that are written under a name of their own, and get the name that they are for when they are whole. Several for one
 * name may be under way, also in threads of one process.
 */
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { threadId } from "node:worker_threads";
import { namesIn } from "../rows/list-names.ts";
import { discard } from "./discard.ts";

const underWay: Set<string> = new Set();
let begun = 0;

/** The name of a file that is to become `target`. */
export function beginPartial(target: string): string {
  const partial = `${target}-partial-${process.pid}-${threadId}-${++begun}`;
  underWay.add(partial);
  return partial;
}

/** It has become what it was for, or was given up. */
export function endPartial(partial: string): void {
  underWay.delete(partial);
}

/** Remove what processes that died have begun for `target`; in a container the one before had the number of this one. */
export function removeLeftovers(target: string): void {
  const folder = dirname(target);
  const start = `${basename(target)}-partial-`;
  for (const name of namesIn(folder)) {
    if (!name.startsWith(start)) continue;
    const [, own, pid, thread] = /^((\d+)-(\d+)-\d+)(-wal|-shm|-journal)?$/.exec(name.slice(start.length)) ?? [];
    if (pid === undefined) continue;
    const isMine = Number(pid) === process.pid && Number(thread) === threadId;
    const isLeft = isMine ? !underWay.has(`${target}-partial-${own}`) : !isRunning(Number(pid));
    if (isLeft) discard(join(folder, name));
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return !(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH");
  }
}
