/** Child processes of Node: start with a TypeScript file, output read line by line. */
import { spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";

/** End of a process, with its stderr. */
export interface ChildEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

/**
 * Runs a file and calls `onLine` for each line of its output. The process is killed by SIGKILL after `timeoutMs`.
 * Processes with the same folder `compileCache` compile their modules once.
 */
export function runChild(
  file: string,
  args: readonly string[],
  onLine: (line: string) => void,
  options: { readonly timeoutMs?: number; readonly cwd?: string; readonly compileCache?: string } = {},
): Promise<ChildEnd> {
  const { timeoutMs, cwd, compileCache } = options;
  const child = spawn(process.execPath, ["--no-warnings", file, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    killSignal: "SIGKILL",
    ...(cwd === undefined ? {} : { cwd }),
    ...(compileCache === undefined ? {} : { env: { ...process.env, NODE_COMPILE_CACHE: compileCache } }),
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
