/** The server mounted in frameworks that build their routes: packed packages, a build, and a process for the built app. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findPort, playMountScript, startMount } from "./mount-script.ts";

const programs = join(import.meta.dirname, "mounts");
const root = fileURLToPath(new URL("../../../../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "statewright-built-mounts-"));
const packs = join(folder, "packs");
/** Builds neither report to their makers nor ask them for versions. */
const silence = { NEXT_TELEMETRY_DISABLED: "1", CI: "1" };

beforeAll(() => run(process.execPath, ["scripts/run.mjs", "pack", packs], root), 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program to its end, and returns its output. Throws if it fails. */
function run(command: string, args: readonly string[], cwd: string): string {
  return execFileSync(command, args, {
    cwd,
    stdio: "pipe",
    encoding: "utf8",
    shell: process.platform === "win32",
    env: { ...process.env, ...silence, NODE_OPTIONS: "" },
  });
}

/** Project of a framework: its exact versions, and the file that mounts the server. */
interface Project {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly route: string;
}

/** Creates a project with the packed packages and the server in `lib`. Returns its folder. */
function createProject({ name, dependencies, route }: Project): string {
  const project = join(folder, name);
  const packages = ["core", "host", "server", "json-schema"].map((pack) => [
    `@statewright/${pack}`,
    `file:${join(packs, `${pack}.tgz`)}`,
  ]);
  const manifest = {
    private: true,
    type: "module",
    dependencies: { ...dependencies, ...Object.fromEntries(packages) },
  };
  const text = readFileSync(join(programs, `${name}.mjs`), "utf8");
  const files = {
    "package.json": JSON.stringify(manifest),
    "lib/server.mjs": stripTypeScriptTypes(readFileSync(join(programs, "server.ts"), "utf8")),
    [route]: text.replaceAll(/^\/\/ @boundaries-ignore .*\n/gm, ""),
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), content);
  }
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  run("npm", ["install", ...flags], project);
  return project;
}

test("built by Next, a catch-all route serves a run, its events, every method, and notices a reader that leaves [V8]", async () => {
  const dependencies = { next: "16.4.6", react: "19.3.1", "react-dom": "19.3.1", zod: "4.6.7" };
  const project = createProject({ name: "next", dependencies, route: "app/agents/[...path]/route.js" });
  const next = join(project, "node_modules/next/dist/bin/next");
  expect(run(process.execPath, [next, "build"], project)).not.toContain("engine started");
  const port = await findPort();
  const args = [next, "start", "-H", "127.0.0.1", "-p", String(port)];
  await playMountScript(await startMount(args, { folder: project, port, env: silence }));
}, 300_000);

const nitroPackages = { "@hono/node-server": "2.1.8", zod: "4.6.7" };

test.each([
  ["nitro", { nitro: "3.0.0", ...nitroPackages }],
  ["nitropack", { nitropack: "2.13.6", ...nitroPackages }],
])(
  "built by %s, a catch-all route serves a run, its events, every method, and notices a reader that leaves [V8]",
  async (name, dependencies) => {
    const project = createProject({ name, dependencies, route: "routes/agents/[...path].js" });
    run(process.execPath, [join(project, "node_modules", name, "dist/cli/index.mjs"), "build"], project);
    const port = await findPort();
    const env = { NITRO_HOST: "127.0.0.1", NITRO_PORT: String(port) };
    await playMountScript(await startMount([".output/server/index.mjs"], { folder: project, port, env }));
  },
  300_000,
);
