import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "@statewright/testing";
import { createAgent } from "statewright";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SearchContext, searchFiles } from "../src/file-search.ts";
import { getResultText, startConversationWith } from "./support/talk.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "statewright-examples-"));
  mkdirSync(join(folder, "inner"));
  for (const name of ["a.ts", "b.ts", "c.md", "inner/d.ts"]) writeFileSync(join(folder, name), name);
});
afterEach(() => rmSync(folder, { recursive: true }));

const search = (pattern: string) =>
  startConversationWith([call(searchFiles, { pattern })], (model, world) =>
    createAgent({ name: "finder", model, tools: [searchFiles], context: SearchContext }).run({
      input: "Find them.",
      context: { folder },
      world,
    }),
  );

test("file search emits an update per file with the files so far, and ends with a heading and one path per line [S4.15, S4.17]", async () => {
  const live = search("**/*.ts");
  expect(await live.end()).toBe("done");
  const [result] = live.results();
  const lines = getResultText(result)?.split("\n") ?? [];
  const files = lines.slice(1);
  expect(lines[0]).toBe("Found 3 files matching **/*.ts:");
  expect(files.toSorted()).toEqual(["a.ts", "b.ts", join("inner", "d.ts")]);
  expect(live.updates()).toEqual(
    files.map((_path, index) => ({
      content: `Found ${index + 1} files so far...`,
      details: { files: files.slice(0, index + 1), totalMatches: index + 1, searchTime: 0 },
    })),
  );
  expect(result?.details).toEqual({ files, totalMatches: 3, searchTime: 0 });
});

test("file search refuses a pattern that leads out of the folder", async () => {
  for (const pattern of ["../*", "{..,inner}/*", join(folder, "*")]) {
    const live = search(pattern);
    expect(await live.end()).toBe("done");
    expect(live.results()[0]?.error?.kind).toBe("denied");
  }
});

test("a file search stopped inside its loop stores its own text, emits nothing more, and no model request follows [S4.16]", async () => {
  const live = search("**/*.ts");
  live.handle.on((event) => {
    if (event.type === "tool.update") live.handle.cancel("enough");
  });
  expect(await live.end()).toBe("cancelled");
  expect(live.updates()).toHaveLength(1);
  expect(live.wires).toHaveLength(1);
  const [result] = live.results();
  expect(result).toMatchObject({ isError: true, error: { kind: "cancelled" } });
  expect(getResultText(result)).toBe("Search cancelled");
});
