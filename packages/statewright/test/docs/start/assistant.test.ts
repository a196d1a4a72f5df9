import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { anthropicServer } from "../../support/anthropic-server.ts";
import { runProgram } from "../../support/run-program.ts";

test("the first program of the README runs unchanged with a real client, a file and a local server", async () => {
  const folder = await mkdtemp(join(tmpdir(), "first-program-"));
  const server = await anthropicServer();
  onTestFinished(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
  const program = new URL("assistant.ts", import.meta.url);
  const env = { ANTHROPIC_BASE_URL: server.baseUrl, ANTHROPIC_API_KEY: "not-a-key" };
  const first = await runProgram(program, { cwd: folder, env });
  expect(first).toBe("The tool says: It rains in Oslo, 7 °C.\ndone: 4 messages saved in agent.db\n");
  const second = await runProgram(program, { cwd: folder, env });
  expect(second).toBe("The tool says: It rains in Oslo, 7 °C.\ndone: 8 messages saved in agent.db\n");
  expect(server.requests).toHaveLength(4);
});
