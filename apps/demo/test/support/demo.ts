/** The demo as a user runs it: a process of its own, with a temporary folder of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { type EffectLine, readEffects } from "../../src/effects-log.ts";

/** The file that `npm run demo` starts. */
export const entry = fileURLToPath(new URL("../../src/index.ts", import.meta.url));

/** Exit code and output of a demo process. */
export interface Played {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** The folder of its state, as it printed it. */
  readonly state: string;
  /** The ids of the processes that it started. */
  readonly pids: readonly number[];
}

export interface PlayOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Run as this user. */
  readonly uid?: number;
  /** Called with everything printed so far, whenever something is printed. */
  readonly onOutput?: (out: string, demo: ChildProcess) => void;
}

/** Creates a folder that every user may write; removed after the test. */
export function createScratchFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "demo-test-")));
  chmodSync(folder, 0o777);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Run the demo to its end. Its temporary files go below `home`. */
export async function play(home: string, args: readonly string[], options: PlayOptions = {}): Promise<Played> {
  const { env = {}, uid, onOutput } = options;
  const { INIT_CWD: _npm, ...inherited } = process.env;
  const demo = spawn(process.execPath, [entry, ...args], {
    cwd: home,
    env: { ...inherited, NO_COLOR: "1", CI: "1", TMPDIR: home, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let out = "";
  let err = "";
  demo.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    onOutput?.(out, demo);
  });
  demo.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  // "exit", not "close": a process that a killed demo left behind would hold the pipes open.
  const code = await new Promise<number>((resolve) =>
    demo.once("exit", (exit) => setImmediate(() => resolve(exit ?? -1))),
  );
  return {
    code,
    out,
    err,
    state: /^State: (.+)$/m.exec(out)?.[1] ?? "",
    pids: [...out.matchAll(/process \d+ started \(pid (\d+)\)/g)].map(([, pid]) => Number(pid)),
  };
}

/** The processes of a demo that are still there. A zombie is not: its parent only has to be told. */
export function listAlive(pids: readonly number[]): readonly number[] {
  return pids.filter((pid) => {
    try {
      process.kill(pid, 0);
    } catch {
      return false;
    }
    return !existsSync(`/proc/${pid}/stat`) || !/^\d+ \(.*\) Z /s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  });
}

/** Lists processes with `text` in their command line; empty when the host has no process list. */
export function listProcesses(text: string): readonly string[] {
  if (!existsSync("/proc/self/cmdline")) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")];
      } catch {
        return [];
      }
    })
    .filter((line) => line.includes(text));
}

/** Reads the effects log of a demo: starts and ends by idempotency key, in order. */
export function listEffects(state: string): ReadonlyMap<string, readonly EffectLine[]> {
  const byKey = new Map<string, EffectLine[]>();
  for (const line of readEffects(join(state, "effects.log")))
    byKey.set(line.key, [...(byKey.get(line.key) ?? []), line]);
  return byKey;
}
