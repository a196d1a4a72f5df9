import { readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the OpenAPI program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "openapi-page-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await copyFile(join(import.meta.dirname, "pets.yaml"), join(folder, "pets.yaml"));
  const printed = await runProgram(new URL("openapi.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("openapi.md"));
});

test("the OpenAPI document on the page equals the loaded document", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../../../docs/openapi.md"), "utf8");
  expect(page).toContain(readFileSync(join(import.meta.dirname, "pets.yaml"), "utf8"));
});
