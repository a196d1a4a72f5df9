import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test.each(["ai-sdk", "openai-agents", "langchain", "mastra"])(
  "the %s migration program prints the output on its page",
  async (name) => {
    const folder = await mkdtemp(join(tmpdir(), "from-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const printed = await runProgram(new URL(`${name}.ts`, import.meta.url), { cwd: folder });
    expect(printed).toBe(printedOn(`coming-from-${name}.md`));
  },
);
