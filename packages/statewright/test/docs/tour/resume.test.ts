import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";

const program = fileURLToPath(new URL("resume.ts", import.meta.url));

test("the processes of the resume page print and die as described", async () => {
  const folder = await mkdtemp(join(tmpdir(), "shop-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const page = printedOn("tour/6-resume.md");
  const lines = page.split("\n").flatMap((line) => {
    const [, what] = /^\$ node resume\.ts (\w+)$/.exec(line) ?? [];
    return what === undefined ? [] : [line, ...listOutput(what, folder)];
  });
  expect(lines.length).toBeGreaterThan(10);
  expect(`${lines.join("\n")}\n`).toBe(page);
});

/** Returns the output of a process, and the shell's message if it was killed. */
function listOutput(what: string, folder: string): readonly string[] {
  const { stdout, stderr, status, signal } = spawnSync(process.execPath, [program, what], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0 && signal !== "SIGKILL") throw new Error(stderr);
  const printed = stdout.split("\n").filter((line) => line !== "");
  return signal === "SIGKILL" ? [...printed, "Killed"] : printed;
}
