/**
 * Identity of the process of an owner, saved with its row. Tells whether the process lives where that is certain: on
 * Linux in one PID namespace. The boot id, the namespace and the start time exclude a reused process id.
 */
import { readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import type { LockKind } from "./owner-lock.ts";

export interface ProcessIdentity {
  readonly pid: number;
  readonly platform: string;
  /** Lock on the owner file. */
  readonly lock: LockKind;
  /** Inode of the database file: the owner of a file does not own copies of the file. */
  readonly inode: number;
  /** Boot id, PID namespace and start time; undefined without `/proc`. */
  readonly boot?: string;
  readonly namespace?: string;
  readonly started?: string;
}

/** Returns the identity of this process. */
export function getProcessIdentity({ lock, inode }: Pick<ProcessIdentity, "lock" | "inode">): ProcessIdentity {
  const place = readPlace();
  const started = readStartTime(process.pid);
  return {
    pid: process.pid,
    platform: process.platform,
    lock,
    inode,
    ...(place === undefined || started === undefined ? {} : { ...place, started }),
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
  const { pid, platform, lock, inode, boot, namespace, started } = value as Readonly<Record<string, unknown>>;
  if (typeof pid !== "number" || typeof inode !== "number" || typeof platform !== "string") return undefined;
  if (lock !== "flock" && lock !== "sqlite") return undefined;
  const place =
    typeof boot === "string" && typeof namespace === "string" && typeof started === "string"
      ? { boot, namespace, started }
      : {};
  return { pid, platform, lock, inode, ...place };
}

/** Returns `unknown` unless the answer is certain: another container or machine can have the same process ids. */
export function judgeProcess(identity: ProcessIdentity): "alive" | "dead" | "unknown" {
  if (identity.platform !== process.platform) return "unknown";
  if (process.platform === "linux") {
    const place = readPlace();
    if (place === undefined || place.boot !== identity.boot || place.namespace !== identity.namespace) return "unknown";
    const started = readStartTime(identity.pid);
    if (started !== undefined) return started === identity.started ? "alive" : "dead";
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

/** Returns the start time of a process in clock ticks since the boot; undefined for a dead or hidden process. */
function readStartTime(pid: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
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
