import { confinePaths } from "@statewright/agent/middleware";
import { decide, defineMiddleware } from "@statewright/core";
import { call, say } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

/** A file system with two links. */
const links = new Map([
  ["way-out", undefined],
  ["way-in", "src"],
]);
const place = async (_root: string, path: string): Promise<string | undefined> =>
  links.has(path) ? links.get(path) : path.startsWith("/") ? undefined : path;

test("confinePaths refuses a path outside the workspace with its name, and the tool does not run", async () => {
  const log: string[] = [];
  const files = { access: "write", filesystem: "write" } as const;
  const agent = createDesk({
    tools: [
      createRecordingTool(log, "save", { safety: { ...files, roots: ["src"] } }),
      createRecordingTool(log, "loose", { safety: files }),
    ],
    middleware: [confinePaths({ root: "/work", resolvePath: place, paths: { save: ["text"] } })],
    script: [
      [
        ...["way-in", "src/a", "way-out", "/etc", "docs/a", "src-2"].map((text) => call("save", { text })),
        call("loose", {}),
      ],
      say("ok"),
    ],
  });
  const end = await agent.run().result;
  expect(log).toEqual(["save way-in", "save src/a"]);
  const no = '!The path in "text" is outside the workspace. Use a path inside it.';
  expect(listAnswers(end).slice(2, 6)).toEqual([no, no, no, no]);
  expect(listAnswers(end)[6]).toMatch(/its path arguments are not configured/);
});

test("confinePaths refuses a place that is not a function and an empty root", () => {
  expect(() => confinePaths({ root: "/", paths: {} } as never)).toThrow(/invalid_option/);
  expect(() => confinePaths({ root: "", resolvePath: place, paths: {} })).toThrow(/invalid_option/);
});

test("confinePaths disables a tool whose listed path argument does not exist", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "save")],
    middleware: [confinePaths({ root: "/work", resolvePath: place, paths: { save: ["txt"] } })],
    script: [call("save", { text: "/etc" }), say("ok")],
  });
  const end = await agent.run().result;
  expect(listAnswers(end)).toEqual(['!The tool "save" has no argument "txt" to check. It is disabled here.']);
  expect(log).toEqual([]);
});

test("confinePaths checks paths set by other middleware, in any order", async () => {
  const log: string[] = [];
  const confined = confinePaths({ root: "/work", resolvePath: place, paths: { save: ["text"] } });
  const before = defineMiddleware({ name: "before", beforeTool: () => decide.modify({ text: "/etc" }) });
  const around = defineMiddleware({
    name: "around",
    aroundTool: ({ call: made }, next) => next({ ...made, args: { text: "way-out" } }),
  });
  for (const middleware of [
    [confined, before],
    [before, confined],
    [confined, around],
    [around, confined],
  ]) {
    const agent = createDesk({
      tools: [createRecordingTool(log, "save")],
      middleware,
      script: [call("save", { text: "a" }), say("ok")],
    });
    expect(listAnswers(await agent.run().result)).toEqual([
      '!The path in "text" is outside the workspace. Use a path inside it.',
    ]);
  }
  expect(log).toEqual([]);
});
