import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the compile program prints the output on its page and writes a diagram and a machine", async () => {
  const folder = await mkdtemp(join(tmpdir(), "compiled-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("compile.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("tour/2-compile.md"));
  expect(await readFile(join(folder, "article.svg"), "utf8")).toContain('aria-label="Graph article"');
  expect(JSON.parse(await readFile(join(folder, "article.json"), "utf8"))).toMatchObject({ id: "article" });
});
