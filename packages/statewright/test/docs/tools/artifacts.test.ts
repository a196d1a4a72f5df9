import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the artifacts program prints the output on its page", async () => {
  const printed = await runProgram(new URL("artifacts.ts", import.meta.url), { cwd: tmpdir() });
  const said = printed.slice(printed.indexOf("---"));
  const blocks = said.split(/(?=^--- )|(?<=cc\.\]\n)/m).map((block) => block.trim());
  const page = printedOn("artifacts.md");
  expect(blocks).toHaveLength(4);
  for (const block of blocks) expect(page).toContain(block);
  expect(printed).toMatch(/^read_log\.txt: 80683 bytes, 4f2befb2…\nreport\.csv: 19 bytes, 0db15073…\n/);
});
