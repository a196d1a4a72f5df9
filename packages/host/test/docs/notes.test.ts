import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

test("the program of the host README runs unchanged", async () => {
  const folder = await mkdtemp(join(tmpdir(), "notes-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const program = fileURLToPath(new URL("notes.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program], { cwd: folder });
  expect(stdout.replaceAll(/ +/g, " ").trim()).toBe("1 notes/todo.md\n2 0");
});
