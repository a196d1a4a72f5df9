import { truncateSync } from "node:fs";
import { type ToolPack, toolConformance } from "@statewright/testing/conformance";
import { expect, test } from "vitest";
import { allTools, bash, find, listFiles, readFile, search } from "../src/index.ts";
import { createTestFolder } from "./support/test-folder.ts";

const folder = createTestFolder();
const { root } = folder;

/** All tools with a body; the application answers `ask_user`. */
function pack(): ToolPack {
  folder.put("notes.txt", "one\ntwo\n");
  folder.put("dot.png", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"));
  return {
    tools: allTools({ root }).filter(({ spec }) => spec.client !== true && spec.name !== "read_artifact"),
    samples: {
      bash: { good: { command: "echo done" }, failing: { command: "no-such-command-at-all" } },
      read_file: { good: { path: "notes.txt" }, failing: { path: "none.txt" }, image: { path: "dot.png" } },
      write_file: { good: { path: "new/file.txt", content: "text" }, failing: { path: "../file.txt", content: "" } },
      edit_file: {
        good: { path: "notes.txt", edits: [{ old: "one", new: "1" }] },
        failing: { path: "notes.txt", edits: [{ old: "three", new: "3" }] },
      },
      list_files: { good: { path: "." }, failing: { path: "none" } },
      find: { good: { glob: "*.txt" }, failing: { glob: "[" } },
      search: { good: { pattern: "two" }, failing: { pattern: "(" } },
      todo: { good: { items: [{ text: "tests", status: "open" }] } },
    },
    hidden: [root],
  };
}

test.each(toolConformance)("the standard tools pass the tool suite: $name", ({ run }) => run(pack));

/** Tools that can run longer than a second, each with such a sample call. */
function slowPack(): ToolPack {
  for (let at = 0; at < 4_000; at++) folder.put(`many/${at % 80}/${at}.txt`, at === 0 ? "hit\n" : "text\n");
  folder.put("large.txt", Buffer.alloc(64 * 1024, "x\n"));
  truncateSync(folder.path("large.txt"), 8 * 2 ** 30);
  return {
    tools: [bash({ root }), readFile({ root }), listFiles({ root }), find({ root }), search({ root, ripgrep: false })],
    samples: {
      bash: { good: { command: "true" }, long: { command: "echo begun; while :; do sleep 60; done" } },
      read_file: { good: { path: "many/0/0.txt" }, long: { path: "large.txt", offset: 10_000_000 } },
      list_files: { good: { path: "many/0" }, long: { path: ".", limit: 5_000 } },
      find: { good: { glob: "0.txt" }, long: { glob: "*.none" } },
      search: { good: { pattern: "hit", path: "many/0" }, long: { pattern: "h.t", glob: "*.txt" } },
    },
    hidden: [root],
  };
}

const stops = toolConformance.filter(({ name }) => name.includes("stops on its abort signal"));

test("every standard tool that can run longer than a second emits an update with details and stops on its signal [S4.38]", async () => {
  expect(stops).toHaveLength(1);
  for (const { run } of stops) await run(slowPack);
});
