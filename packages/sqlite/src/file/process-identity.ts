/**
 * Identity of the process and thread of an owner, saved with its row. Proves that the thread is alive or ended where
 * that is certain: on Linux in one PID namespace. The boot id, the namespace and the start time exclude a reused id.
 * A terminated worker thread is a dead owner, although its process lives.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import process from "node:process";
import type { LockKind } from "./owner-lock.ts";

export interface ProcessIdentity {
  readonly pid: number;
  readonly platform: string;
  /** Lock on the owner file. */
  readonly lock: LockKind;
  /** Inode of the database file: the owner of a file does not own copies of the file. */
  readonly inode: number;
  /** Boot id, PID namespace, thread id and start time of the thread; undefined without `/proc`. */
  readonly boot?: string;
  readonly namespace?: string;
  readonly thread?: string;
  readonly started?: string;
}

/** Returns the identity of this thread and its process. */
export function getProcessIdentity({ lock, inode }: Pick<ProcessIdentity, "lock" | "inode">): ProcessIdentity {
  const place = readPlace();
  const thread = readThreadId();
  const started = thread === undefined ? undefined : readStartTime(`${process.pid}/task/${thread}`);
  return {
    pid: process.pid,
    platform: process.platform,
    lock,
    inode,
    ...(place === undefined || thread === undefined || started === undefined ? {} : { ...place, thread, started }),
  };
}

/** Parses a saved identity; undefined for a damaged value. */
export function parseProcessIdentity(text: string): ProcessIdentity | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { pid, platform, lock, inode, boot, namespace, thread, started } = value as Readonly<Record<string, unknown>>;
  if (typeof pid !== "number" || typeof inode !== "number" || typeof platform !== "string") return undefined;
  if (lock !== "flock" && lock !== "sqlite") return undefined;
  const place =
    typeof boot === "string" &&
    typeof namespace === "string" &&
    typeof thread === "string" &&
    typeof started === "string"
      ? { boot, namespace, thread, started }
      : {};
  return { pid, platform, lock, inode, ...place };
}

/** Returns `unknown` unless the answer is certain: another container or machine can have the same process ids. */
export function judgeProcess(identity: ProcessIdentity): "alive" | "dead" | "unknown" {
  if (identity.platform !== process.platform) return "unknown";
  if (process.platform === "linux") {
    const place = readPlace();
    if (place === undefined || place.boot !== identity.boot || place.namespace !== identity.namespace) return "unknown";
    const started = readStartTime(`${identity.pid}/task/${identity.thread}`);
    if (started !== undefined) return started === identity.started ? "alive" : "dead";
    // The process is listed without the thread: the thread has ended.
    if (readStartTime(String(identity.pid)) !== undefined) return "dead";
  } else if (process.platform !== "darwin") return "unknown";
  // `/proc` may hide the processes of other users.
  return hasProcess(identity.pid) ? "unknown" : "dead";
}

function readPlace(): { readonly boot: string; readonly namespace: string } | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return {
      boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
      namespace: readlinkSync("/proc/self/ns/pid"),
    };
  } catch {
    return undefined;
  }
}

/** Returns the id of the operating system's thread, for which Node has no function. */
function readThreadId(): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return basename(readlinkSync("/proc/thread-self"));
  } catch {
    return undefined;
  }
}

/**
 * Returns the start time of a process (`12`) or thread (`12/task/14`) in clock ticks since the boot; undefined for an
 * ended or hidden one.
 */
function readStartTime(entry: string): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const text = readFileSync(`/proc/${entry}/stat`, "utf8");
    // The program name in parentheses may contain spaces and parentheses.
    const [state, ...fields] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? "ended" : fields[18];
  } catch {
    return undefined;
  }
}

function hasProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return !(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH");
  }
}
