import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("a front process submits an order and an answer, and only the worker process executes nodes [E62, PK7]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "front-and-worker-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const start = (role: string): Promise<string> =>
    runProgram(new URL("front-and-worker.ts", import.meta.url), { cwd, args: [role, "order-1"] });
  expect(await start("submit")).toBe("queued\n");
  await start("work");
  expect(await start("submit")).toBe("waiting\n");
  expect(await start("approve")).toBe("paused\n");
  await start("work");
  const lines = (await start("follow")).trimEnd().split("\n");
  expect(lines.at(-1)).toBe("order-1 packed by work, approved, shipped by work");
  expect(lines.filter((line) => line.endsWith("run.paused"))).toHaveLength(1);
});
