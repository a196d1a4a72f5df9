/** Releases: one version, the changelog, licences, order and ranges of the packages, refusals, and a repeated release. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createVersionSection, readSection } from "../release/changelog.mjs";
import { findForbiddenLicences, isAllowedLicence, listLicences } from "../release/licences.mjs";
import { findWrongRanges, getTarballName, readPackedPackage, sortByDependencies } from "../release/packed-package.mjs";
import { describeProvenance } from "../release/provenance.mjs";
import { publishPackages } from "../release/publish.mjs";
import { findRefusals, readRepositoryState } from "../release/repository-state.mjs";
import { runCommand } from "../release/run-command.mjs";
import { applyVersion, createStage } from "../release/stage.mjs";
import { getNextVersion, listPackages, readVersion, versionFile } from "../release/version.mjs";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "release-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the version", () => {
  test("all packages and the source file have one version", () => {
    expect(readVersion(root)).toMatch(/^\d+\.\d+\.\d+$/);
  });

  test("no other source of a package repeats the version", () => {
    const found = runGit(
      root,
      "grep",
      "-l",
      "--fixed-strings",
      `"${readVersion(root)}"`,
      "--",
      ":(glob)packages/*/src/**",
    );
    expect(found.split("\n")).toEqual([versionFile]);
  });

  test("a bump raises one number and clears the numbers after it; another word is refused", () => {
    expect(["major", "minor", "patch"].map((bump) => getNextVersion("1.2.3", bump))).toEqual([
      "2.0.0",
      "1.3.0",
      "1.2.4",
    ]);
    expect(() => getNextVersion("1.2.3", "toString")).toThrow(
      'expected major, minor, patch or no word, got "toString"',
    );
  });

  test("packages of two versions are refused with the version of each", () => {
    const place = createRepository("versions");
    writeManifest(place, "b", { name: "@x/b", version: "0.3.0" });
    expect(() => readVersion(place)).toThrow("expected one version in all packages, got @x/b 0.3.0, @x/a 0.2.0");
  });
});

describe("the changelog", () => {
  const text = [
    "# Changelog",
    "",
    "## Unreleased",
    "",
    "### Fixed",
    "- one",
    "",
    "### Added",
    "",
    "- two",
    "  with a second line",
    "### Fixed",
    "- one",
    "- three costs $& and $1",
    "",
    "## 0.1.0 - 2026-01-01",
    "",
    "### Added",
    "",
    "- old",
    "",
  ].join("\n");

  test("the entries of Unreleased become a section of the version with each heading and each entry once", () => {
    const { text: next, notes } = createVersionSection(text, { version: "0.2.0", date: "2026-02-01" });
    expect(notes).toBe("### Added\n\n- two\n  with a second line\n\n### Fixed\n\n- one\n- three costs $& and $1\n");
    expect(next).toBe(
      `# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-02-01\n\n${notes}\n## 0.1.0 - 2026-01-01\n\n### Added\n\n- old\n`,
    );
    expect(readSection(next, "0.2.0")?.join("\n").trim()).toBe(notes.trim());
  });

  test("a version without entries, a repeated version and an unknown heading are refused", () => {
    const create = (changelog: string) => () =>
      createVersionSection(changelog, { version: "0.1.0", date: "2026-02-01" });
    expect(create("# Changelog\n\n## Unreleased\n\n### Added\n")).toThrow('expected entries under "Unreleased"');
    expect(create(text)).toThrow('expected no section "0.1.0"');
    expect(create("## Unreleased\n\n### Improved\n- one\n")).toThrow('got "Improved"');
  });

  test("the changelog of the repository has headings and entries that a release accepts", () => {
    const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
    const { notes } = createVersionSection(changelog, { version: "999.0.0", date: "2026-02-01" });
    expect(notes.match(/^### /gm)?.length).toBeLessThanOrEqual(6);
  });
});

describe("licences", () => {
  test("the list has every direct production dependency of the packages, and all of its licences are allowed", async () => {
    const rows = await listLicences(root);
    const ours = new Set(listPackages(root).map(({ manifest }) => manifest.name));
    const direct = listPackages(root).flatMap(({ manifest }) => Object.keys(manifest.dependencies ?? {}));
    expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(direct.filter((name) => !ours.has(name))));
    expect(rows.filter(({ version, licence }) => !version || !licence)).toEqual([]);
    expect(findForbiddenLicences(rows)).toEqual([]);
  });

  test("a dependency with a licence outside of the list is named, and one without a licence as well", () => {
    const problems = findForbiddenLicences([
      { name: "good", version: "1.0.0", licence: "MIT" },
      { name: "copyleft", version: "2.0.0", licence: "GPL-3.0-only" },
      { name: "bare", version: "3.0.0", licence: "Unknown" },
    ]);
    expect(problems.map((problem: string) => /for (\S+ \S+), got (\S+)\./.exec(problem)?.slice(1))).toEqual([
      ["copyleft 2.0.0", "GPL-3.0-only"],
      ["bare 3.0.0", "Unknown"],
    ]);
  });

  test("an expression is allowed if one part of an OR, or all parts of an AND, are on the list", () => {
    const allowed = ["MIT", "(MIT OR GPL-2.0)", "GPL-2.0 OR MIT", "MIT AND ISC", "(GPL-2.0 AND MIT) OR (ISC AND MIT)"];
    const refused = ["", "GPL-2.0", "MIT AND GPL-2.0", "MIT OR", "(MIT", "MIT ISC", "SEE LICENSE IN LICENSE"];
    expect(allowed.filter((expression) => !isAllowedLicence(expression))).toEqual([]);
    expect(refused.filter((expression) => isAllowedLicence(expression))).toEqual([]);
  });
});

describe("the packages of a release", () => {
  test("the copy of a repository gets the version, its packed manifests have ranges of the version, and the repository stays", async () => {
    const place = createRepository("staged");
    writeFileSync(join(place, "pnpm-workspace.yaml"), "packages:\n  - packages/*\n");
    writeManifest(place, "b", { name: "@x/b", version: "0.2.0", dependencies: { "@x/a": "workspace:^" } });
    writeFileSync(join(place, "packages/b/openapi.json"), '{ "openapi": "3.1.0", "info": { "version": "0.2.0" } }');
    mkdirSync(join(place, "node_modules"));
    mkdirSync(join(place, "packages/b/node_modules/@x"), { recursive: true });
    symlinkSync("../../../core", join(place, "packages/b/node_modules/@x/a"));
    writeFileSync(join(place, ".gitignore"), "node_modules\n");
    const stage = await createStage(place);
    try {
      const { files } = applyVersion(stage, { version: "0.3.0", date: "2026-02-01" });
      const documents = ["packages/b/openapi.json", "packages/b/package.json", "packages/core/package.json"];
      expect(files).toEqual([...documents, versionFile, "CHANGELOG.md"]);
      expect(readFileSync(join(stage, "packages/b/openapi.json"), "utf8")).toContain('"version": "0.3.0"');
      const packages = await Promise.all(listPackages(stage).map((found) => pack(stage, found)));
      expect(findWrongRanges(packages, "0.3.0")).toEqual([]);
      expect(sortByDependencies(packages)).toMatchObject([
        { name: "@x/a", version: "0.3.0", file: "x-a-0.3.0.tgz", files: 2 },
        { name: "@x/b", version: "0.3.0", file: "x-b-0.3.0.tgz", files: 2, dependencies: { "@x/a": "^0.3.0" } },
      ]);
    } finally {
      rmSync(stage, { recursive: true, force: true });
    }
    expect(readVersion(place)).toBe("0.2.0");
    expect(readSection(readFileSync(join(place, "CHANGELOG.md"), "utf8"), "0.3.0")).toBeUndefined();
  });

  test("each package of the repository comes after the packages it depends on", () => {
    const packages = listPackages(root).map(({ manifest }) => createPacked(manifest.name, manifest.dependencies ?? {}));
    const sorted = sortByDependencies(packages);
    expect(sorted).toHaveLength(packages.length);
    const names = sorted.map(({ name }) => name);
    for (const { name, dependencies } of sorted)
      for (const needed of Object.keys(dependencies).filter((each) => names.includes(each)))
        expect(names.indexOf(needed), `${needed} before ${name}`).toBeLessThan(names.indexOf(name));
  });

  test("a packed manifest with another version or range is named", () => {
    const packages = [createPacked("@x/a", {}), createPacked("@x/b", { "@x/a": "^0.1.0", other: "^9.0.0" })];
    expect(findWrongRanges(packages, "0.2.0")).toEqual(["@x/b: expected the range ^0.2.0 of @x/a, got ^0.1.0."]);
    expect(findWrongRanges(packages.slice(0, 1), "0.3.0")).toEqual(["@x/a: expected version 0.3.0, got 0.2.0."]);
  });

  test("packages that depend on each other are refused", () => {
    const packages = [createPacked("@x/a", { "@x/b": "^1.0.0" }), createPacked("@x/b", { "@x/a": "^1.0.0" })];
    expect(() => sortByDependencies(packages)).toThrow("expected no cycle of dependencies, got one of @x/a, @x/b");
  });

  test("provenance needs a CI job with a token and the repository in each manifest", () => {
    const manifest = { name: "@x/a", repository: "github:x/a" };
    const env = { ACTIONS_ID_TOKEN_REQUEST_URL: "https://token" };
    expect(describeProvenance({ env, manifests: [manifest], commit: "c0ffee" })).toMatchObject({ attested: true });
    expect(describeProvenance({ env: {}, manifests: [manifest], commit: "c0ffee" }).note).toContain(
      "not attested; it needs a CI job",
    );
    expect(describeProvenance({ env, manifests: [{ name: "@x/a" }], commit: "c0ffee" })).toEqual({
      attested: false,
      note: 'built from commit c0ffee, not attested; it needs "repository" in the manifests of @x/a',
    });
  });
});

describe("the state of the repository", () => {
  test("a clean main with entries may be released; a changed tree, another branch and no entries are refused", async () => {
    const place = createRepository("state");
    expect(await listRefusals(place)).toEqual([]);
    writeFileSync(join(place, "CHANGELOG.md"), "## Unreleased\n");
    runGit(place, "checkout", "--quiet", "-b", "feature");
    const refusals = (await listRefusals(place)).join("\n");
    expect(refusals).toContain("expected the branch main, got feature");
    expect(refusals).toContain("expected no changes in the tree, got 1 changed files");
    expect(refusals).toContain('expected entries in CHANGELOG.md under "Unreleased", got none');
  });

  test("a release without a word continues at the tag of its version, and is refused after a later commit", async () => {
    const place = createRepository("tagged");
    applyVersion(place, { version: "0.2.0", date: "2026-02-01" });
    runGit(place, "commit", "--quiet", "--all", "--message", "Release 0.2.0");
    expect((await listRefusals(place)).join("\n")).toContain("expected a tag v0.2.0");
    runGit(place, "tag", "v0.2.0");
    expect(await listRefusals(place)).toEqual([]);
    runGit(place, "commit", "--quiet", "--allow-empty", "--message", "Later");
    expect((await listRefusals(place)).join("\n")).toContain("expected HEAD at the tag v0.2.0");
  });

  async function listRefusals(place: string): Promise<string[]> {
    return findRefusals(place, "0.2.0", await readRepositoryState(place, "0.2.0"));
  }
});

describe("publication", () => {
  test("tarballs are published in their order; a repeat publishes only the missing ones", async () => {
    const registry = await startRegistry();
    try {
      const { place, packages } = await packTiny("published", registry.url);
      registry.refuse("@x/b");
      const options = { folder: place, cwd: place, attested: false, log: () => {} };
      await expect(publishPackages(packages, options)).rejects.toThrow("@x/b");
      expect(registry.published).toEqual(["@x/a"]);
      registry.refuse(undefined);
      await publishPackages(packages, options);
      await publishPackages(packages, options);
      expect(registry.published).toEqual(["@x/a", "@x/b"]);
      const [first, ...rest] = packages;
      await expect(publishPackages([{ ...first, integrity: "sha512-other" }, ...rest], options)).rejects.toThrow(
        "expected sha512-other for @x/a 0.2.0 in the registry",
      );
    } finally {
      await registry.close();
    }
  });

  test("an error of the registry other than a missing package stops the publication", async () => {
    const registry = await startRegistry({ status: 401 });
    try {
      const { place, packages } = await packTiny("unauthorised", registry.url);
      const options = { folder: place, cwd: place, attested: false, log: () => {} };
      await expect(publishPackages(packages, options)).rejects.toThrow("expected an answer of the registry for @x/a");
    } finally {
      await registry.close();
    }
  });
});

/** A repository with the package `@x/a`, version 0.2.0, on the branch main with one commit. */
function createRepository(name: string): string {
  const place = join(folder, name);
  mkdirSync(join(place, "packages/core/src/base"), { recursive: true });
  writeManifest(place, "core", { name: "@x/a", version: "0.2.0" });
  writeFileSync(join(place, versionFile), 'export const packageVersion = "0.2.0";\n');
  writeFileSync(join(place, "CHANGELOG.md"), "# Changelog\n\n## Unreleased\n\n### Added\n\n- one\n");
  runGit(place, "init", "--quiet", "--initial-branch", "main");
  runGit(place, "config", "user.name", "test");
  runGit(place, "config", "user.email", "test@example.com");
  runGit(place, "add", ".");
  runGit(place, "commit", "--quiet", "--message", "First");
  return place;
}

function writeManifest(place: string, name: string, manifest: object): void {
  mkdirSync(join(place, "packages", name), { recursive: true });
  writeFileSync(join(place, "packages", name, "package.json"), JSON.stringify(manifest));
}

function createPacked(name: string, dependencies: Readonly<Record<string, string>>) {
  return { name, version: "0.2.0", dependencies, peerDependencies: {}, file: "", bytes: 0, files: 0, integrity: "" };
}

async function packTiny(name: string, url: string) {
  const place = join(folder, name);
  mkdirSync(place);
  writeFileSync(join(place, ".npmrc"), `registry=${url}/\n//${new URL(url).host}/:_authToken=not-a-token\n`);
  const packages = [];
  for (const [short, dependencies] of [
    ["a", {}],
    ["b", { "@x/a": "^0.2.0" }],
  ] as const) {
    const manifest = { name: `@x/${short}`, version: "0.2.0", dependencies };
    writeManifest(place, short, manifest);
    packages.push(await pack(place, { folder: `packages/${short}`, manifest }));
  }
  return { place, packages: sortByDependencies(packages) };
}

/** Packs a folder into a tarball at the top of the repository. */
async function pack(place: string, { folder: part, manifest }: { readonly folder: string; readonly manifest: Named }) {
  const file = join(place, getTarballName(manifest));
  await runCommand("pnpm", ["pack", "--out", file], { cwd: join(place, part) });
  return readPackedPackage(file);
}

interface Named {
  readonly name: string;
  readonly version: string;
}

/** A registry on this machine: it keeps what is published, refuses one package, or answers each read with `status`. */
async function startRegistry({ status }: { readonly status?: number } = {}) {
  const published: string[] = [];
  const documents = new Map<string, string>();
  let refused: string | undefined;
  const server = createServer((request, response) => {
    const name = decodeURIComponent(String(request.url).slice(1));
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const found = documents.get(name);
      const isPut = request.method === "PUT";
      const code = isPut ? (name === refused ? 403 : 200) : (status ?? (found === undefined ? 404 : 200));
      if (isPut && code === 200) {
        documents.set(name, body);
        published.push(name);
      }
      response.writeHead(code, { "content-type": "application/json" }).end(found ?? "{}");
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    published,
    refuse: (name: string | undefined) => {
      refused = name;
    },
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function runGit(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd, encoding: "utf8" });
  expect(stderr + status, `git ${args.join(" ")}`).toBe("0");
  return stdout.trim();
}
