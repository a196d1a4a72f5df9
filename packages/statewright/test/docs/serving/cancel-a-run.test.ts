import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("a process cancels the answer of a worker process in mid-sentence, and pauses a queued run [PK11, SE5, ND11]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "cancel-a-run-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const start = (role: string, thread = "talk-1"): Promise<string> =>
    runProgram(new URL("cancel-a-run.ts", import.meta.url), { cwd, args: [role, thread] });
  await start("ask");
  const worker = start("work");
  await start("wait");
  expect(await start("cancel")).toBe("requested running\n");
  expect(await worker).toBe("cancelled the customer has left\n");
  expect(await start("cancel")).toBe("unchanged cancelled\n");
  await start("ask", "talk-2");
  expect(await start("pause", "talk-2")).toBe("requested queued\n");
  expect((await start("work")).trimEnd()).toBe("paused");
  expect(await start("cancel", "talk-2")).toBe("cancelled cancelled\n");
  await start("ask", "talk-3");
  expect(await start("cancel", "talk-3")).toBe("cancelled cancelled\n");
});
