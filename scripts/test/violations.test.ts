// Proves that the linter rejects each kind of violation: plants every kind in a copy of the repository with only its
// settings, its manifests and a few lines of code.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const bin = join(repository, "node_modules/.bin");
const layers = [
  "base",
  "model",
  "state",
  "long-term",
  "tool",
  "define",
  "checkpoint",
  "compile",
  "run",
  "resume",
  "inspect",
];

/** Planted files: path, code, and the text of the expected linter error; no text for valid code. */
const planted: readonly { readonly file: string; readonly code: string; readonly refusal?: string }[] = [
  ...layers.slice(0, -1).map((layer, index) => ({
    file: `packages/core/src/${layer}/up.ts`,
    code: `export { value } from "../${layers[index + 1]}/down.ts";`,
    refusal: "A folder of core imports only itself and the folders before it",
  })),
  ...layers.slice(1).map((layer, index) => ({
    file: `packages/core/src/${layer}/down.ts`,
    code: `import { value as before } from "../${layers[index]}/down.ts";\nexport const value: number = before + 1;`,
  })),
  { file: "packages/core/src/base/down.ts", code: "export const value: number = 1;" },
  {
    file: "packages/core/src/define/deep/up.ts",
    code: 'import type { value } from "../../run/down.ts";\nexport type Value = typeof value;',
    refusal: "A folder of core imports only itself",
  },
  {
    file: "packages/core/src/state/lazy.ts",
    code: 'export const later = (): Promise<unknown> => import("../run/down.ts");',
    refusal: "A folder of core imports only itself",
  },
  {
    file: "packages/core/src/model/entry.ts",
    code: 'export type Core = typeof import("../index.ts");',
    refusal: "A folder of core imports only itself",
  },

  {
    file: "packages/core/src/run/kernel/up.ts",
    code: 'export { value } from "../loop/down.ts";',
    refusal: "A room of run/ imports only itself",
  },
  {
    file: "packages/core/src/run/loop/front.ts",
    code: 'export type { Value } from "../queue.ts";',
    refusal: "A room of run/ imports only itself",
  },
  { file: "packages/core/src/define/x.ts", code: 'export { setup } from "xstate";', refusal: "XState stays inside" },
  {
    file: "packages/core/src/inspect/x.ts",
    code: 'import { getShortestPaths } from "xstate/graph";\ngetShortestPaths;',
  },
  {
    file: "packages/agent/src/x.ts",
    code: 'import type { Snapshot } from "xstate";\nexport type S = Snapshot<1>;',
    refusal: "XState stays inside",
  },
  {
    file: "packages/core/src/state/queue.ts",
    code: 'import Queue from "p-queue";\nnew Queue();',
    refusal: "p-queue stays inside",
  },
  { file: "packages/core/src/run/queue.ts", code: 'import Queue from "p-queue";\nnew Queue();' },
  {
    file: "packages/core/src/run/calendar.ts",
    code: 'import { Cron } from "croner";\nnew Cron("0 9 * * *");',
    refusal: "croner stays inside",
  },
  { file: "packages/core/src/resume/calendar.ts", code: 'import { Cron } from "croner";\nnew Cron("0 9 * * *");' },
  {
    file: "packages/sqlite/src/zod.ts",
    code: 'import * as z from "zod";\nz.string();',
    refusal: "zod stays inside core and server",
  },
  {
    file: "packages/agent/src/immer.ts",
    code: 'import { produce } from "immer";\nproduce;',
    refusal: "immer stays inside core",
  },
  { file: "packages/core/src/state/zod.ts", code: 'import * as z from "zod";\nz.string();' },
  {
    file: "packages/core/src/state/named.ts",
    code: 'import { z } from "zod";\nz.string();',
    refusal: "import * as z from 'zod'",
  },
  {
    file: "packages/core/src/state/default.ts",
    code: 'import z from "zod";\nz.string();',
    refusal: "import * as z from 'zod'",
  },
  ...[
    'defineTool({ name: "look", run: () => expect(1).toBe(2) });',
    "handle.on((event) => expect(event).toBe(2));",
    'signal.addEventListener("abort", () => expect(1, "late").toBe(2));',
    'defineMiddleware({ name: "m", beforeTool: () => expect(1).toBe(2) });',
  ].map((code, index) => ({
    file: `packages/core/test/swallowed-${index}.test.ts`,
    code,
    refusal: "a failed expectation here fails no test",
  })),
  {
    file: "packages/core/test/collected.test.ts",
    code: "handle.on((event) => seen.push(event));\nexpect(seen).toEqual([]);",
  },
  { file: "apps/demo/src/zod.ts", code: 'import * as z from "zod";\nz.string();' },
  {
    file: "packages/agent/src/db.ts",
    code: 'import Database from "better-sqlite3";\nnew Database("");',
    refusal: "better-sqlite3 and node:sqlite stay inside",
  },
  {
    file: "packages/agent/src/db.ts",
    code: 'import { DatabaseSync } from "node:sqlite";\nnew DatabaseSync("");',
    refusal: "better-sqlite3 and node:sqlite stay inside",
  },
  {
    file: "packages/plugins/src/host.ts",
    code: 'import { Server } from "@modelcontextprotocol/server";\nnew Server({ name: "", version: "" });',
    refusal: "The SDK of MCP stays inside",
  },
  {
    file: "packages/plugins/src/validator.ts",
    code: 'import { Ajv } from "ajv";\nnew Ajv();',
    refusal: "ajv stays inside",
  },
  { file: "packages/sqlite/src/db.ts", code: 'import Database from "better-sqlite3";\nnew Database("");' },
  {
    file: "packages/testing/src/index2.ts",
    code: 'import { expect } from "vitest";\nexpect(1);',
    refusal: "vitest stays inside",
  },
  { file: "packages/testing/src/vitest.ts", code: 'import { expect } from "vitest";\nexpect(1);' },

  { file: "packages/agent/src/now.ts", code: "export const at: number = Date.now();", refusal: "world.clock" },
  { file: "packages/agent/src/date.ts", code: "export const at: Date = new Date();", refusal: "world.clock" },
  { file: "packages/agent/src/parse.ts", code: "export const at: Date = new Date(0);" },
  { file: "packages/agent/src/chance.ts", code: "export const dice = Math.random;", refusal: "world.random" },
  { file: "packages/agent/src/id.ts", code: "export const id: string = crypto.randomUUID();", refusal: "world.random" },
  {
    file: "packages/agent/src/deadline.ts",
    code: "export const signal = AbortSignal.timeout(5);",
    refusal: "world.schedule",
  },
  { file: "packages/agent/src/timer.ts", code: "setTimeout(() => undefined, 5);", refusal: "setTimeout" },
  { file: "packages/agent/src/interval.ts", code: "setInterval(() => undefined, 5);", refusal: "setInterval" },
  { file: "packages/agent/src/immediate.ts", code: "setImmediate(() => undefined);", refusal: "setImmediate" },
  {
    file: "packages/agent/src/monotonic.ts",
    code: "export const at: number = performance.now();",
    refusal: "performance",
  },
  { file: "packages/agent/src/net.ts", code: 'await fetch("http://localhost");', refusal: "fetch" },
  {
    file: "packages/agent/src/around.ts",
    code: "globalThis.setTimeout(() => undefined, 5);",
    refusal: "by way of globalThis",
  },
  {
    file: "packages/core/src/base/now.ts",
    code: "export const at: number = Date.now() + performance.now();\nsetTimeout(() => at, 5);",
  },
  { file: "packages/host/src/now.ts", code: "export const at: number = Date.now();\nsetTimeout(() => at, 5);" },
  { file: "packages/agent/test/now.test.ts", code: "export const at: number = Date.now();" },
  {
    file: "packages/agent/src/files.ts",
    code: 'import { readFileSync } from "node:fs";\nreadFileSync("a");',
    refusal: "Files and child processes stay inside",
  },
  {
    file: "packages/plugins/src/net.ts",
    code: 'import { get } from "node:https";\nget("a");',
    refusal: "The one way out to the network stays inside",
  },
  { file: "packages/host/src/net.ts", code: 'import { get } from "node:https";\nget("a");' },
  {
    file: "packages/testing/src/child.ts",
    code: 'import { fork } from "node:child_process";\nfork("a");',
    refusal: "Files and child processes stay inside",
  },
  {
    file: "packages/testing/src/crash/child.ts",
    code: 'import { fork } from "node:child_process";\nfork("a");',
  },
  { file: "packages/host/src/files.ts", code: 'import { readFile } from "node:fs/promises";\nreadFile("a");' },
  {
    file: "packages/core/src/base/path.ts",
    code: 'import { join } from "node:path";\njoin("a");',
    refusal: "core imports nothing of Node",
  },

  { file: "packages/agent/src/any.ts", code: "export const loose = (value: any): unknown => value;", refusal: "any" },
  { file: "packages/agent/src/barrel.ts", code: 'export * from "./parse.ts";', refusal: "barrel" },
  { file: "packages/agent/src/index.ts", code: 'export * from "./parse.ts";' },
  {
    file: "packages/agent/src/ring-a.ts",
    code: 'import { b } from "./ring-b.ts";\nexport const a = (): number => b();',
    refusal: "cycle",
  },
  {
    file: "packages/agent/src/ring-b.ts",
    code: 'import { a } from "./ring-a.ts";\nexport const b = (): number => a();',
    refusal: "cycle",
  },
  { file: "packages/agent/src/stranger.ts", code: 'import pad from "left-pad";\npad;', refusal: "left-pad" },
  {
    file: "packages/agent/src/dev-only.ts",
    code: 'import * as testing from "@statewright/testing";\ntesting;',
    refusal: "@statewright/testing",
  },
  { file: "packages/agent/test/dev-only.test.ts", code: 'import * as testing from "@statewright/testing";\ntesting;' },
  { file: "packages/agent/src/print.ts", code: "console.log(1);", refusal: "console" },
];

let copy = "";
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "violations-"));
  copySkeleton(copy);
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

describe("layers, homes and seams", () => {
  const errors = new Map<string, string[]>();
  beforeAll(() => {
    for (const { file, code } of planted) plant(file, code);
    const { stdout } = runTool("biome", "lint", "--reporter=json", "--max-diagnostics=none", ".");
    for (const { severity, message, location, advices } of JSON.parse(stdout).diagnostics) {
      if (severity !== "error") continue;
      errors.set(location.path, [...(errors.get(location.path) ?? []), message + JSON.stringify(advices)]);
    }
  });

  for (const { file, code, refusal } of planted) {
    const id = /"(xstate|zod|immer|p-queue|croner|better-sqlite3|vitest)[/"]/.test(code) ? "K10 " : "";
    const shown = `in ${file}: ${code.split("\n")[0]}`;
    if (refusal === undefined) {
      test(`the linter allows ${shown}${id && " [K10]"}`, () => expect(errors.get(file) ?? []).toEqual([]));
    } else {
      test(`the linter refuses ${shown}${id && " [K10]"}`, () =>
        expect(errors.get(file)?.join("\n") ?? "").toContain(refusal));
    }
  }
});

test("a package that imports files of another package is refused by name", () => {
  plant("packages/agent/src/reach.ts", 'import { value } from "../../core/src/run/down.ts";\nvalue;');
  const { status, output } = runTool("turbo", "boundaries");
  expect(output).toContain("`../../core/src/run/down.ts` leaves the package");
  expect(status).not.toBe(0);
});

test("a package with a forbidden dependency is refused by name", () => {
  plant(
    "packages/core/package.json",
    JSON.stringify({ name: "@statewright/core", dependencies: { "@statewright/agent": "workspace:^" } }),
  );
  const { status, output } = runTool("turbo", "boundaries");
  expect(output).toMatch(
    /Package `@statewright\/agent` found without any tag listed in allowlist\s+(\| )?for\s+(\| )?`@statewright\/core`/,
  );
  expect(status).not.toBe(0);
});

test("an unused export, file or dependency is refused by name", () => {
  plant("packages/host/src/index.ts", 'import { used } from "./half.ts";\nexport const host: number = used;');
  plant("packages/host/src/half.ts", "export const used: number = 1;\nexport const forgotten: number = 2;");
  plant("packages/host/src/alone.ts", "export const alone: number = 1;");
  const { status, output } = runTool("knip", "--workspace", "packages/host");
  expect(output).toMatch(/^forgotten .*packages\/host\/src\/half\.ts/m);
  expect(output).toMatch(/^packages\/host\/src\/alone\.ts/m);
  expect(output).toMatch(/^@statewright\/core .*packages\/host\/package\.json/m);
  expect(status).not.toBe(0);
});

/** Copies settings and manifests, links the installed packages, and copies no code. */
function copySkeleton(to: string): void {
  for (const name of readdirSync(repository, { withFileTypes: true })) {
    if (name.isFile()) cpSync(join(repository, name.name), join(to, name.name));
  }
  cpSync(join(repository, "scripts/lint"), join(to, "scripts/lint"), { recursive: true });
  linkFolder("node_modules");
  for (const folder of ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(repository, parent)).map((name) => `${parent}/${name}`),
  )) {
    mkdirSync(join(to, folder, "src"), { recursive: true });
    for (const name of ["package.json", "turbo.json", "tsconfig.json"])
      cpSync(join(repository, folder, name), join(to, folder, name));
    writeFileSync(join(to, folder, "src/index.ts"), "export {};\n");
    linkFolder(`${folder}/node_modules`);
  }
}

function linkFolder(path: string): void {
  if (existsSync(join(repository, path))) symlinkSync(join(repository, path), join(copy, path), "junction");
}

function plant(file: string, code: string): void {
  mkdirSync(dirname(join(copy, file)), { recursive: true });
  writeFileSync(join(copy, file), `${code}\n`);
}

function runTool(name: string, ...args: string[]): { status: number | null; stdout: string; output: string } {
  const windows = process.platform === "win32";
  const program = windows ? `"${join(bin, name)}.cmd"` : join(bin, name);
  const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined, TURBO_TELEMETRY_DISABLED: "1" };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: copy, env, encoding: "utf8", shell: windows });
  return { status, stdout, output: stdout + stderr };
}
