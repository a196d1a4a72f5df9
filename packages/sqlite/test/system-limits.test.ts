import { join } from "node:path";
import { expect, test } from "vitest";
import { runLimited } from "./support/run-limited.ts";
import { createFolder } from "./support/stores.ts";

test("a process without file handles fails before anything is started or recorded, and an open store needs no more [F22]", async () => {
  const home = createFolder();
  const ended = await runLimited(
    "./processes/handles-process.ts",
    [join(home.path, "agent.db"), join(home.path, "diary.txt")],
    {
      openFiles: 64,
    },
  );
  expect([ended.code, ended.complaints]).toEqual([0, ""]);
  const refusal = expect.stringMatching(/^store_failed: the limit of open files of this process is reached.*ulimit -n/);
  expect(JSON.parse(ended.said)).toEqual({
    opened: refusal,
    runOutcome: refusal,
    threads: 0,
    did: 0,
    again: "done",
    further: "done",
  });
  home.remove();
});
