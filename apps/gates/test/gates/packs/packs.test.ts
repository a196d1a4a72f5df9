/** A release as users install it: the tarballs of a dry run in an empty project. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import * as z from "zod";

const root = fileURLToPath(new URL("../../../../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "packs-"));
const tarballs = join(folder, "tarballs");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const releaseSchema = z.object({
  version: z.string(),
  provenance: z.object({ attested: z.boolean(), note: z.string() }),
  licences: z.array(z.object({ name: z.string(), version: z.string(), licence: z.string() })).min(1),
  packages: z.array(
    z.object({ name: z.string(), version: z.string(), file: z.string(), integrity: z.string().startsWith("sha512-") }),
  ),
});

test("all programs of the docs run from the packed packages and print the output on their pages [FX50]", async () => {
  const { code, printed } = await runScript("release", "minor", "--dry-run", "--out", tarballs);
  const done = printed.filter((line) => line.startsWith("ok "));
  expect(printed.filter((line) => line.startsWith("FAILED"))).toEqual([]);
  expect(code).toBe(0);
  expect(done).toContain("ok     the tests of the programs of the docs");
  expect(done).toContain("ok     the tests in the folder examples");
}, 1_200_000);

test("the tarballs of a dry run of a release are one version of each package, and npm installs them into an empty project", async () => {
  const release = releaseSchema.parse(JSON.parse(readFileSync(join(tarballs, "release.json"), "utf8")));
  const files = release.packages.map(({ file }) => file);
  expect(files.toSorted()).toEqual(
    readdirSync(tarballs)
      .filter((file) => file.endsWith(".tgz"))
      .toSorted(),
  );
  expect(files).toHaveLength(readdirSync(join(root, "packages")).length);
  expect(new Set(release.packages.map(({ version }) => version))).toEqual(new Set([release.version]));

  const project = mkdtempSync(join(folder, "project-"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
  const paths = files.map((file) => join(tarballs, file));
  expect(await run("npm", ["install", ...flags, ...paths], project)).toMatchObject({ code: 0 });
  const load = `console.log(typeof (await import("statewright")).createAgent)`;
  expect(await run(process.execPath, ["--input-type=module", "-e", load], project)).toMatchObject({
    code: 0,
    printed: ["function", ""],
  });
}, 300_000);

/** Runs a task of the repository without the settings of these tests. */
function runScript(...args: readonly string[]): Promise<Output> {
  return run(process.execPath, ["scripts/run.mjs", ...args], root);
}

interface Output {
  readonly code: number | null;
  readonly printed: readonly string[];
}

/** Runs a program and returns its lines. Its errors go to the terminal. */
function run(program: string, args: readonly string[], cwd: string): Promise<Output> {
  const { NODE_OPTIONS: _, NODE_COMPILE_CACHE: __, ...env } = process.env;
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    process.stdout.write(chunk);
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, printed: text.split("\n") }));
  });
}
