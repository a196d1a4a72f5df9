import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("a process prints the words of a worker process, and another one shows its open message [SE6]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "watch-a-run-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const start = (role: string): Promise<string> =>
    runProgram(new URL("watch-a-run.ts", import.meta.url), { cwd, args: [role], env: { XDG_RUNTIME_DIR: cwd } });
  await start("ask");
  const [watched, opened] = [start("watch"), start("open")];
  await start("work");
  expect(await watched).toBe("In Oslo it rains today.\n");
  expect((await opened).trimEnd().split("\n").at(-1)?.trim()).toBe("3");
});
