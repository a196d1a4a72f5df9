import { symlinkSync } from "node:fs";
import {
  approval,
  channel,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type Json,
  type Message,
  memoryStore,
  resume,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { expect, test } from "vitest";
import { defaultTools, editFile, writeFile } from "../src/index.ts";
import { createTestFolder } from "./support/test-folder.ts";
import { runCall } from "./support/tool-calls.ts";

const folder = createTestFolder();
const { root } = folder;

/** Starts a call of `write_file` in a graph that declares the interrupt `approve`, as each agent does. */
const startWrite = (path: string, tools = defaultTools({ root })) => {
  const store = memoryStore();
  const graph = defineGraph({
    name: "calls",
    state: defineState({ messages: channel.messages() }),
    interrupts: { approve: approval },
  })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
  const content = [{ type: "call", id: "c1", name: "write_file", args: { path, content: "new" } }] as const;
  const messages: Message[] = [{ role: "assistant", id: "a1", finish: "calls", content }];
  return {
    result: run(graph, { store, thread: "t", input: { messages } }).result,
    answer: (approve: boolean) => resume(graph, { store, thread: "t", answers: { approve } }).result,
  };
};

test.each([
  ".git/config",
  ".git/hooks/pre-commit",
  "vendor/lib/.git/config",
  ".GIT/config",
  ".g\u200cit/config",
  "GIT~1/config",
  "src/../.git/config",
  ".husky/pre-commit",
  ".github/workflows/ci.yml",
  ".vscode/tasks.json",
  ".npmrc",
  ".circleci/config.yml",
  "crates/a/.cargo/config.toml",
  ".codex/config.toml",
  ".envrc",
])("a write to %s asks a person, and runs only after the approval [FX68]", async (path) => {
  const { answer, result } = startWrite(path);
  const waiting = await result;
  const reason = expect.stringContaining("is protected");
  expect(waiting).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "approve", payload: { tool: "write_file", args: { path }, reason } }],
  });
  expect(() => folder.text(path)).toThrow("ENOENT");
  expect((await answer(true)).status).toBe("done");
  expect(folder.text(path)).toBe("new");
});

test("a denied write to a protected path changes nothing, and a link does not hide the path [FX68]", async () => {
  folder.put(".git/config", "old");
  symlinkSync(".git", folder.path("notes"));
  const { answer, result } = startWrite("notes/config");
  expect((await result).status).toBe("waiting");
  const { state } = await answer(false);
  expect(getMessageText(state.messages[1])).toContain("denied");
  expect(folder.text(".git/config")).toBe("old");
});

test("write_file and edit_file deny a protected path in a graph without an approval interrupt [FX68]", async () => {
  folder.put(".git/config", "old");
  const edits: Json = [{ old: "old", new: "new" }];
  for (const came of [
    await runCall(writeFile({ root }), { path: ".git/config", content: "new" }),
    await runCall(editFile({ root }), { path: ".git/config", edits }),
  ]) {
    expect(came.result.error?.kind).toBe("denied");
    expect(came.text).toContain(".git/config is protected (.git)");
  }
  expect(folder.text(".git/config")).toBe("old");
});

test("protectedPaths replaces the default list, and other paths need no approval [FX68]", async () => {
  const args = (path: string) => ({ path, content: "new" });
  expect((await runCall(writeFile({ root, protectedPaths: [] }), args(".git/config"))).isError).toBe(false);
  const strict = writeFile({ root, protectedPaths: ["secrets/keys"] });
  expect((await runCall(strict, args(".npmrc"))).isError).toBe(false);
  expect((await runCall(strict, args("app/secrets/keys/a.pem"))).result.error?.kind).toBe("denied");
  for (const path of ["src/git/config", ".gitignore", "github/workflows/ci.yml", "secrets/keys"])
    expect((await runCall(writeFile({ root }), args(path))).isError).toBe(false);
  const { result } = startWrite(".npmrc", defaultTools({ root, protectedPaths: [] }));
  expect((await result).status).toBe("done");
  expect(() => writeFile({ root, protectedPaths: [""] })).toThrow(/protectedPaths/);
  expect(() => writeFile({ root, protectedPaths: ".git" as never })).toThrow(/protectedPaths/);
});
