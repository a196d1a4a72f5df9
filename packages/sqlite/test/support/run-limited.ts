/** Runs programs with system limits, set by the shell. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface Limits {
  /** Maximum file size in blocks of 512 bytes. */
  readonly fileBlocks?: number;
  /** Maximum number of open files. */
  readonly openFiles?: number;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly said: string;
  readonly complaints: string;
}

/** Runs a module of this folder with arguments and waits for its exit. */
export function runLimited(module: string, args: readonly string[], limits: Limits = {}): Promise<Ended> {
  const sets = [
    ...(limits.fileBlocks === undefined ? [] : [`ulimit -f ${limits.fileBlocks}`]),
    ...(limits.openFiles === undefined ? [] : [`ulimit -n ${limits.openFiles}`]),
  ];
  const script = [...sets, 'exec "$@"'].join("; ");
  const file = fileURLToPath(new URL(module, import.meta.url));
  const child = spawn("sh", ["-c", script, "sh", process.execPath, file, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [said, complaints] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    complaints += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, said, complaints }));
  });
}
