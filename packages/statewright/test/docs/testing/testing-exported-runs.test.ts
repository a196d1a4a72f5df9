import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, exportTest, replayRun, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { getHistory, memoryStore } from "statewright";
import { afterAll, expect, test } from "vitest";
import { refunds } from "./refund-agent.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-exported-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("an exported production run becomes a test", async () => {
  const store = memoryStore();
  const model = scriptedModel([call("find_order", { order: "7" }), call("refund", { order: "7" }), say("Paid back.")]);
  const t = await testRun(refunds, { store, thread: "t7", input: "Pay order 7 back.", model });
  await t.finish();
  await t.resume({ approve: true });
  const file = join(folder, "refund.test.ts");

  const { recording, unrecorded } = await exportTest(store, "t7", {
    graph: refunds,
    from: "../src/refunds.ts#refunds",
    file,
    redact: [/\b\d{16}\b/],
  });
  console.log(unrecorded);

  expect(unrecorded).toEqual([]);
  const recorded = JSON.parse(readFileSync(recording, "utf8"));
  const run = await replayRun(refunds, recorded);
  expect(run).toEqual({
    path: [["model"], ["tools"], ["model"], ["tools"], ["model"]],
    status: "done",
    state: recorded.state,
  });

  const checkpoints: number[] = [];
  for await (const { checkpointId } of getHistory(refunds, { store, thread: "t7" })) checkpoints.unshift(checkpointId);
  const part = await exportTest(store, "t7", {
    graph: refunds,
    from: "../src/refunds.ts#refunds",
    file,
    upTo: checkpoints[1] ?? 0,
    write: false,
  });
  console.log(part.text);

  const partRecorded = JSON.parse(part.recordingText);
  expect(await replayRun(refunds, partRecorded)).toEqual({
    path: [["model"]],
    status: "held",
    state: partRecorded.state,
  });
});
