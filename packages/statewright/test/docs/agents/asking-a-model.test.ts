import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LLMock } from "@copilotkit/aimock";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the program of the page about asking a model prints the output on its page against a local server [Y2]", async () => {
  const mock = new LLMock({ port: 0 });
  mock.onMessage(/^Rate/, { content: '{"stars":1}' });
  mock.onMessage(/^Who answers/, { content: '{"value":"apologise"}' });
  mock.onMessage(/^Apologise/, { content: "We are sorry about the lamp." });
  mock.onMessage(/^Norwegian/, { content: "lampe" });
  mock.onMessage(/see/, { content: "A harbour." });
  await mock.start();
  const folder = await mkdtemp(join(tmpdir(), "asking-"));
  onTestFinished(async () => {
    await mock.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const env = { OPENAI_BASE_URL: `${mock.url}/v1`, OPENAI_API_KEY: "not-a-key" };
  const printed = await runProgram(new URL("asking-a-model.ts", import.meta.url), { cwd: folder, env });
  const page = await readFile(new URL("../../../../../docs/asking-a-model.md", import.meta.url), "utf8");
  const lines = printed.trimEnd().split("\n");
  expect(lines).toEqual(["1 of 5: We are sorry about the lamp.", "lampe", "A harbour.", "2 of 5: Sorry."]);
  for (const line of lines) expect(page).toContain(`    ${line}\n`);
});
