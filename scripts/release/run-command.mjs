// Runs a program with the tools of the repository, and fails with the output of the program.

import { spawn } from "node:child_process";
import { delimiter, join, resolve } from "node:path";

const tools = join(resolve(import.meta.dirname, "../.."), "node_modules/.bin");

/**
 * Resolves to the output of the program. Rejects on another exit code than 0, with both outputs in the message. `show`
 * passes the output on to this terminal while the program runs.
 */
export async function runCommand(program, args, { cwd, show = false }) {
  const { code, stdout, stderr } = await tryCommand(program, args, { cwd, show });
  if (code === 0) return stdout;
  throw new Error(`${program} ${args.join(" ")}: expected exit code 0, got ${code}.\n${stdout}${stderr}`);
}

/** Resolves to the exit code and the outputs of the program, whatever the code is. */
export function tryCommand(program, args, { cwd, show = false }) {
  const env = { ...process.env, PATH: [tools, process.env.PATH].join(delimiter) };
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
  const outputs = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"])
    child[name].setEncoding("utf8").on("data", (text) => {
      outputs[name] += text;
      if (show) process[name].write(text);
    });
  return new Promise((done, reject) => {
    child.once("error", reject);
    child.once("close", (code) => done({ code, ...outputs }));
  });
}
