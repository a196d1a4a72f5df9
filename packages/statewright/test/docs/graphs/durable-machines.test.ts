import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the durable machine program runs unchanged", async () => {
  const folder = await mkdtemp(join(tmpdir(), "order-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("durable-machines.ts", import.meta.url), { cwd: folder });
  // A key has a random part of its thread.
  expect(printed.replace(/order-9\/\w+\//, "order-9/…/").split("\n")).toEqual([
    "asking CONFIRM",
    "done shipped parcel order-9/…/main/2:0/0.order.shipping",
    "3 shipping → __end__",
    "2 charging → shipping",
    "1 asking → charging",
    "0 input → asking",
    "CANCEL",
    "cancelled",
    "",
  ]);
});
