import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the MCP servers program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mcp-page-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await copyFile(join(import.meta.dirname, "bookings.mjs"), join(folder, "bookings.mjs"));
  const printed = await runProgram(new URL("mcp.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("mcp.md"));
});
