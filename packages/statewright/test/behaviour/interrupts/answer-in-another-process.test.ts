import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

const program = new URL("../../support/processes/payment-process.ts", import.meta.url);

async function twoProcesses(answer: object) {
  const cwd = mkdtempSync(join(tmpdir(), "statewright-asked-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const first = JSON.parse(await runProgram(program, { cwd }));
  const second = JSON.parse(await runProgram(program, { cwd, args: [JSON.stringify(answer)] }));
  expect(second.pid).not.toBe(first.pid);
  expect(first).toMatchObject({
    status: "waiting",
    state: { amount: 100 },
    asked: [{ key: "approve", payload: { amount: 100 } }],
    log: ["asked"],
  });
  return second;
}

test("an interrupt of an ended process is answered in another process, and the run continues there [K8]", async () => {
  expect(await twoProcesses({ ok: true })).toMatchObject({
    status: "done",
    state: { amount: 100 },
    asked: [],
    log: ["asked", "paid 100, by newer code"],
  });
  expect(await twoProcesses({ ok: false, note: "too much" })).toMatchObject({
    status: "done",
    state: { amount: 100, note: "too much" },
    log: ["asked", "declined: too much"],
  });
});
