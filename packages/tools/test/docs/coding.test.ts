import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runProcess } from "@statewright/host";
import { afterAll, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "statewright-coding-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the coding tools program prints the output in the docs", async () => {
  const program = fileURLToPath(new URL("coding.ts", import.meta.url));
  const { stdout, stderr } = await runProcess(process.execPath, [program, folder], { cwd: import.meta.dirname });
  expect(stderr).toBe("");
  expect(stdout.replaceAll(/ls: .*/g, "ls: …")).toBe(
    [
      "--- write_file",
      "Created notes/todo.md: 17 bytes.",
      "--- bash",
      "2",
      "ls: …",
      "[exit code 2]",
      "--- search",
      "notes/todo.md:1:- ship it",
      "",
    ].join("\n"),
  );
});
