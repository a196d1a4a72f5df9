/** Runs a program like a reader: in a new Node.js process, in a new folder, without other environment variables. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Returns the output of the program; rejects with its stderr when it fails. */
export function runProgram(
  program: URL,
  options: { readonly cwd: string; readonly env?: Record<string, string>; readonly args?: readonly string[] },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [fileURLToPath(program), ...(options.args ?? [])], {
      cwd: options.cwd,
      env: {
        PATH: process.env["PATH"],
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        NODE_OPTIONS: process.env["NODE_OPTIONS"],
        ...options.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      errors += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(text) : reject(new Error(`exit ${code}: ${errors}`))));
  });
}
