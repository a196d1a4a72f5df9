/** Tests of the package `statewright` that go further when they are told to. */
import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../../../packages/statewright/", import.meta.url));

/** Run the test files with this in their names; tells whether they passed. */
export function runTests(name: string, env: Readonly<Record<string, string>>): Promise<boolean> {
  const child = spawn("vitest", ["run", "--config", "../../vitest.config.ts", name], {
    cwd: folder,
    stdio: "inherit",
    shell: process.platform === "win32",
    env: { ...process.env, ...env },
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code === 0));
  });
}
