import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "@statewright/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readText } from "../src/read-text.ts";
import { talk, textOfResult } from "./support/talk.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "statewright-examples-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("S0.65 S2.71 the file's text is the one block of the result, unchanged, without details", async () => {
  const path = join(folder, "note.txt");
  const text = "Line one\r\n\tline two: é 🙂\n\n";
  writeFileSync(path, text);
  const { results } = await talk([readText], [call("read_text", { path })]);
  expect(results()[0]?.content).toEqual([{ type: "text", text }]);
  expect(results()[0]).not.toHaveProperty("details");
});

test("S0.65 S2.71 without a path the arguments do not fit, and the text says which is missing", async () => {
  const { results, events } = await talk([readText], [call("read_text", {})]);
  expect(results()[0]?.error?.kind).toBe("invalid_args");
  expect(textOfResult(results()[0])).toContain("missing 'path'");
  expect(events.some(({ type }) => type === "tool.started")).toBe(false);
});

test("S0.25 S2.25 S0.65 S2.71 what the disk refuses is a failure that names the path and the cause", async () => {
  const path = join(folder, "missing.txt");
  const { results } = await talk([readText], [call("read_text", { path })]);
  expect(results()[0]?.error?.kind).toBe("failed");
  expect(textOfResult(results()[0])).toMatch(/^Cannot read .*missing\.txt: ENOENT/);
  expect(textOfResult(results()[0])?.startsWith(`Cannot read ${path}: `)).toBe(true);
});
