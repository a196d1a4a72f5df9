import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "@statewright/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readText } from "../src/read-text.ts";
import { getResultText, runConversation } from "./support/talk.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "statewright-examples-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("read_text returns the unchanged file text as its only block, without details [S0.65, S2.71]", async () => {
  const path = join(folder, "note.txt");
  const text = "Line one\r\n\tline two: é 🙂\n\n";
  writeFileSync(path, text);
  const { results } = await runConversation([readText], [call(readText, { path })]);
  expect(results()[0]?.content).toEqual([{ type: "text", text }]);
  expect(results()[0]).not.toHaveProperty("details");
});

test("read_text without a path has invalid arguments, and the error names the missing one [S0.65, S2.71]", async () => {
  const { results, events } = await runConversation([readText], [call("read_text", {})]);
  expect(results()[0]?.error?.kind).toBe("invalid_args");
  expect(getResultText(results()[0])).toContain("missing 'path'");
  expect(events.some(({ type }) => type === "tool.started")).toBe(false);
});

test("a disk error of read_text is a failure with the path and the cause [S0.25, S2.25, S0.65, S2.71]", async () => {
  const path = join(folder, "missing.txt");
  const { results } = await runConversation([readText], [call(readText, { path })]);
  expect(results()[0]?.error?.kind).toBe("failed");
  expect(getResultText(results()[0])).toMatch(/^Cannot read .*missing\.txt: ENOENT/);
  expect(getResultText(results()[0])?.startsWith(`Cannot read ${path}: `)).toBe(true);
});
