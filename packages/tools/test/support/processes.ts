/** Running processes, as reported by the system. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** Lists the pids of running processes with this text in their arguments. */
export function listPids(text: string): readonly number[] {
  const all = process.platform === "linux" ? fromProc() : fromPs();
  return all.flatMap(({ pid, args }) => (pid !== process.pid && args.includes(text) ? [pid] : []));
}

/** Waits until no process has this text in its arguments: a killed process needs a moment to disappear. */
export async function waitUntilGone(text: string): Promise<void> {
  while (listPids(text).length > 0) await new Promise((next) => setImmediate(next));
}

interface Found {
  readonly pid: number;
  readonly args: string;
}

function fromProc(): readonly Found[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const state = readFileSync(`/proc/${name}/stat`, "latin1").replace(/^.*\) /s, "")[0];
      const args = readFileSync(`/proc/${name}/cmdline`, "latin1");
      return state === "Z" || state === "X" ? [] : [{ pid: Number(name), args }];
    } catch {
      return [];
    }
  });
}

function fromPs(): readonly Found[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, stat = "", args = ""] = /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || stat.startsWith("Z") ? [] : [{ pid: Number(pid), args }];
  });
}

let made = 0;

/** Creates a unique sleep duration, to find the pid of the process. */
export function createUniqueSeconds(): string {
  made++;
  return `9${process.pid}.${made}`;
}
