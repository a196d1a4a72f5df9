import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LLMock } from "@copilotkit/aimock";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../support/run-program.ts";

test("the program at the top of the README asks a person, resumes and answers", async () => {
  const mock = new LLMock({ port: 0 });
  mock.onToolResult("toolu_1", { content: "Your refund is paid." });
  mock.onMessage(/refund order 7/, { toolCalls: [{ id: "toolu_1", name: "refund", arguments: '{"order":"7"}' }] });
  await mock.start();
  const folder = await mkdtemp(join(tmpdir(), "approved-refund-"));
  onTestFinished(async () => {
    await mock.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const env = { ANTHROPIC_BASE_URL: `${mock.url}/v1`, ANTHROPIC_API_KEY: "not-a-key" };
  const printed = await runProgram(new URL("approved-refund.ts", import.meta.url), { cwd: folder, env });
  expect(printed).toMatchInlineSnapshot(`
    "{
      callId: 'toolu_1',
      tool: 'refund',
      args: { order: '7' },
      reason: 'a person approves refunds'
    }
    done Your refund is paid.
    "
  `);
});
