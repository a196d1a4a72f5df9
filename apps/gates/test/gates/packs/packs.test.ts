/** The packages as users install them: the tarballs in an empty project. */
import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../../../../", import.meta.url));

test("all programs of the docs run from the packed packages and print the output on their pages [FX50]", async () => {
  const { code, printed } = await checkPackedPackages();
  const done = printed.filter((line) => line.startsWith("ok "));
  expect(printed.filter((line) => line.startsWith("FAILED"))).toEqual([]);
  expect(code).toBe(0);
  expect(done).toContain("ok     the tests of the programs of the docs");
  expect(done).toContain("ok     the tests in the folder examples");
}, 1_200_000);

/** Runs `npm run pack:check` without the settings of these tests, and returns its lines. Its errors go to the terminal. */
function checkPackedPackages(): Promise<{ readonly code: number | null; readonly printed: readonly string[] }> {
  const { NODE_OPTIONS: _, NODE_COMPILE_CACHE: __, ...env } = process.env;
  const child = spawn(process.execPath, ["scripts/run.mjs", "pack:check"], {
    cwd: root,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    process.stdout.write(chunk);
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, printed: text.split("\n") }));
  });
}
