/** Docs in the tarball of each package: its pages, a SKILL.md for coding agents, and working links. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createLlmsText } from "../llms.mjs";
import { findDocProblems, listDocs, pagesByPackage } from "../package-docs.mjs";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "packed-docs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("llms.txt equals the output of scripts/llms.mjs for docs/README.md", () => {
  expect(readFileSync(join(root, "llms.txt"), "utf8"), "run: node scripts/llms.mjs").toBe(createLlmsText());
});

test("every package lists the pages that it ships", () => {
  expect(Object.keys(pagesByPackage).sort()).toEqual(
    readdirSync(join(root, "packages")).map((name) => `packages/${name}`),
  );
});

test.each(Object.keys(pagesByPackage))("the packed docs of %s are self-contained", (name) => {
  for (const { path, content } of listDocs(root, name)) {
    mkdirSync(dirname(join(folder, name, path)), { recursive: true });
    writeFileSync(join(folder, name, path), content);
  }
  expect(findDocProblems(join(folder, name), name)).toEqual([]);
});

test("the page that errors name is in the installed package statewright [FX44]", () => {
  expect(listDocs(root, "packages/statewright").map(({ path }) => path)).toContain("docs/errors.md");
});

test("the docs check finds a missing page and a link that leads out of the package", () => {
  const broken = join(folder, "broken");
  mkdirSync(broken);
  writeFileSync(join(broken, "README.md"), "[a page](docs/page.md) and [the repository](../../ARCHITECTURE.md)");
  expect(findDocProblems(broken, "broken")).toMatchInlineSnapshot(`
    [
      "broken: the tarball has no docs",
      "broken: README.md links to docs/page.md, which is not in the tarball (.)",
      "broken: README.md links to ../../ARCHITECTURE.md, which is not in the tarball (.)",
      "broken: the tarball has no SKILL.md",
    ]
  `);
});

test("packing an unprepared folder is refused with the fix by pnpm and npm, in every package", () => {
  const packages = readdirSync(join(root, "packages")).map((name) => join(root, "packages", name));
  for (const place of packages) {
    const { scripts }: { readonly scripts: object } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
    expect(scripts, place).toMatchObject({ prepack: "node ../../scripts/refuse-folder.mjs" });
  }
  const out = join(folder, "refused.tgz");
  const pnpm = join(root, "node_modules/.bin/pnpm");
  const shell = process.platform === "win32";
  const cwd = join(root, "packages/host");
  const { status, stdout, stderr } = spawnSync(pnpm, ["pack", "--out", out], { cwd, encoding: "utf8", shell });
  expect(status).not.toBe(0);
  expect(stdout + stderr).toContain("npm run pack -- <folder> packages/host");
  expect(existsSync(out)).toBe(false);
});
