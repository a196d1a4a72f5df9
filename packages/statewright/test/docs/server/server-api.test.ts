import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("a program starts a run over the native API, approves a transfer, reads the stream, and makes a schedule", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "server-api-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const program = new URL("server-api.ts", import.meta.url);
  expect(await runProgram(program, { cwd, env: { PORT: "0" } })).toBe(
    ["200 waiting", "event: run.started event: run.completed event: end", "daily active", ""].join("\n"),
  );
  expect((await readFile(join(cwd, "bank.txt"), "utf8")).trim().split("\n")).toHaveLength(1);
});
