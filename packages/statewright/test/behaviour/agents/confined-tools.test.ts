import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolvePathInside } from "@statewright/host";
import { call, say, scriptedModel } from "@statewright/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { createAgent, type DefinedTool, defineTool, memoryStore, type ToolSafety } from "../../../src/index.ts";
import { confinePaths } from "../../../src/middleware.ts";

let root = "";
let outside = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "confined-"));
  outside = await mkdtemp(join(tmpdir(), "outside-"));
  await mkdir(join(root, "src"));
  await mkdir(join(root, "docs"));
  await writeFile(join(root, "src", "a.ts"), "a");
  await symlink(outside, join(root, "way-out"));
  await symlink(join(root, "src"), join(root, "way-in"));
});
afterAll(async () => {
  await rm(root, { recursive: true });
  await rm(outside, { recursive: true });
});

function fileTool(name: string, log: string[], safety: Partial<ToolSafety>): DefinedTool {
  return defineTool({
    name,
    description: `Does ${name}.`,
    input: z.object({ path: z.union([z.string(), z.array(z.string())]).optional() }),
    effect: "idempotent",
    safety,
    run: ({ path }) => {
      log.push(`${name} ${String(path)}`);
      return "ok";
    },
  }) as DefinedTool;
}

test("paths are checked after links are resolved: a path outside the root or the tool's own roots is refused [S1.85, S1.87]", async () => {
  const log: string[] = [];
  const tools = [
    fileTool("read", log, { access: "read", filesystem: "read" }),
    fileTool("edit", log, { access: "write", filesystem: "write", roots: ["src"] }),
    fileTool("loose", log, { access: "write", filesystem: "write" }),
    fileTool("free", log, { access: "read" }),
  ];
  const confine = confinePaths({ root, resolvePath: resolvePathInside, paths: { read: ["path"], edit: ["path"] } });
  const made: readonly (readonly [string, unknown, boolean])[] = [
    ["read", "src/a.ts", true],
    ["read", join(root, "docs", "new.md"), true],
    ["read", "way-in/a.ts", true],
    ["read", ["src/a.ts", "docs"], true],
    ["read", undefined, true],
    ["read", "../x", false],
    ["read", "/etc/passwd", false],
    ["read", "way-out/x", false],
    ["read", "src/../../x", false],
    ["read", "way-in/../docs", true],
    ["read", "way-out/../x", false],
    ["read", ["src/a.ts", "/etc/passwd"], false],
    ["edit", "src/b.ts", true],
    ["edit", "way-in/b.ts", true],
    ["edit", "docs/b.md", false],
    ["edit", "src-2/b.ts", false],
    ["loose", "src/a.ts", false],
    ["free", "/etc/passwd", true],
  ];
  const agent = createAgent({
    name: "desk",
    tools,
    middleware: [confine],
    store: memoryStore(),
    model: scriptedModel([
      made.map(([name, path]) => call(name, path === undefined ? {} : ({ path } as never))),
      say("ok"),
    ]),
  });
  const { state } = await agent.run({ thread: "t", input: "go" }).result;
  const runs = state.messages.flatMap((message) => (message.role === "tool" ? [!message.isError] : []));
  expect(runs.map((isRun, index) => [...(made[index] ?? []).slice(0, 2), isRun])).toEqual(made);
  expect(log).toHaveLength(made.filter(([, , isRun]) => isRun).length);
});
