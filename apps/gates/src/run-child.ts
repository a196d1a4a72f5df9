/** Node processes of ours: started with a file of TypeScript, read line by line. */
import { spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";

/** How a process ended, and what it said beside its lines. */
export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

/** Run a file; each line of its output is handed over. `timeoutMs` ends it by SIGKILL. */
export function runChild(
  file: string,
  args: readonly string[],
  onLine: (line: string) => void,
  options: { readonly timeoutMs?: number; readonly cwd?: string } = {},
): Promise<ChildEnd> {
  const { timeoutMs, cwd } = options;
  const child = spawn(process.execPath, ["--no-warnings", file, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    killSignal: "SIGKILL",
    ...(cwd === undefined ? {} : { cwd }),
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const lines = createInterface({ input: child.stdout });
  lines.on("line", onLine);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, stderr }));
  });
}
