import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("jobs of a queue are delivered once, however often they are sent [PK1]", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "deliver-work-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const runRole = async (role: string): Promise<string> =>
    (await runProgram(new URL("deliver-work.ts", import.meta.url), { cwd, args: [role, "order-1"] })).trim();
  await runRole("send");
  expect(await runRole("work")).toBe("order-1.run.json waiting null");
  expect(await readdir(join(cwd, "jobs"))).toEqual(["order-1.timers.json"]);
  await runRole("send");
  await runRole("approve");
  const output = '{"log":["order-1 packed","approved","shipped"],"order":"order-1"}';
  expect((await runRole("work")).split("\n")).toEqual([
    `order-1.answer.json done ${output}`,
    `order-1.run.json done ${output}`,
  ]);
  await runRole("approve");
  expect(await runRole("work")).toBe(`order-1.answer.json done ${output}`);
});
