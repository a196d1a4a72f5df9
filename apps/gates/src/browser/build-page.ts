/** Builds a page of the examples outside of the workspace, from its lockfile and without install scripts. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const pages = fileURLToPath(new URL("../../../examples/pages/", import.meta.url));

/** Installs, type-checks and builds a page. Returns the folder of the built files. Throws when a step fails. */
export function buildPage(name: string): string {
  const source = join(pages, name);
  const lock = readFileSync(join(source, "package-lock.json"));
  const hash = createHash("sha256").update(lock).update(process.version).digest("hex").slice(0, 12);
  const root = join(tmpdir(), "statewright-gate-clients", `pages-${name}-${hash}`);
  const folder = join(root, name);
  const marker = join(folder, "installed");
  if (!existsSync(marker)) rmSync(root, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  rmSync(join(folder, "src"), { recursive: true, force: true });
  // Pages share components: each page is built beside the sources of the others.
  for (const page of readdirSync(pages)) cpSync(join(pages, page, "src"), join(root, page, "src"), { recursive: true });
  cpSync(source, folder, { recursive: true, filter: (file) => !["node_modules", "dist"].includes(basename(file)) });
  if (!existsSync(marker)) {
    runNpm(folder, ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    writeFileSync(marker, "");
  }
  runNpm(folder, ["run", "check"]);
  runNpm(folder, ["run", "build"]);
  return `${join(folder, "dist")}/`;
}

function runNpm(folder: string, args: readonly string[]): void {
  execFileSync("npm", args, {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
    shell: process.platform === "win32",
  });
}
