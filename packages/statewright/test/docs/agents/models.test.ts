import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LLMock } from "@copilotkit/aimock";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the models program prints the output on its page with real clients against a local server", async () => {
  const mock = new LLMock({ port: 0 });
  mock.on({ model: /locked/ }, { error: { message: "No such key" }, status: 401 });
  mock.onMessage(/hello/, { content: "Hello." });
  mock.onMessage(/see/, { content: "A harbour." });
  mock.onMessage(/other words/, { content: "A place for ships." });
  mock.onMessage(/news/, { content: "It rains.", webSearches: ["oslo news"] });
  await mock.start();
  const folder = await mkdtemp(join(tmpdir(), "models-"));
  onTestFinished(async () => {
    await mock.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const url = `${mock.url}/v1`;
  const env = {
    ...{ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "not-a-key" },
    ...{ OPENAI_BASE_URL: url, OPENAI_API_KEY: "not-a-key", HOUSE_URL: url, HOUSE_KEY: "not-a-key" },
  };
  const observed = await runProgram(new URL("models.ts", import.meta.url), { cwd: folder, env });
  const page = await readFile(new URL("../../../../../docs/models.md", import.meta.url), "utf8");
  for (const line of observed.trimEnd().split("\n")) expect(page).toContain(`    ${line}\n`);
  expect(observed.split("\n")).toHaveLength(13);
});
