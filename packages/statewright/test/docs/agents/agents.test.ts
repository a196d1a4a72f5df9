import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";

test("the agents program prints the output on its page", async () => {
  const printed = await runProgram(new URL("agents.ts", import.meta.url), { cwd: tmpdir() });
  const page = printedOn("agents.md");
  const lines = printed.trim().split("\n");
  const [talk, streamed] = [lines.slice(0, 5), lines.slice(5, 9)];
  expect(page).toContain(talk.join("\n"));
  expect(page).toContain(streamed.join("\n"));
  const heard = lines.find((line) => line.startsWith("failed"));
  expect(heard).toBe("failed Now I can hear you.");
  expect(page).toContain(heard);
  const stop = lines.findIndex((line) => line.startsWith("I stop here"));
  expect(page).toContain(lines.slice(stop, stop + 2).join("\n"));
  expect(lines.at(-2)).toBe("4 messages by hand");
});
