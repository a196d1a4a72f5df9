/**
 * The test kit as its users have it: packed, installed beside the newest vitest of each version that it promises, in both
 * pools, in watch mode, without a file left behind.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";

const root = join(import.meta.dirname, "../../../..");
const packed = ["core", "pictures", "sqlite", "testing"];
const versions = ["4", "5"];

/** Run the gate; true when everything held. */
export async function runVitests(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "vitests-"));
  try {
    const tarballs = join(folder, "tarballs");
    const pack = [join(root, "scripts/pack-package.mjs"), tarballs, ...packed.map((name) => `packages/${name}`)];
    if (!step("pack", process.execPath, pack, root).good) return false;
    return versions.map((version) => holdsIn(version, join(folder, version), tarballs)).every(Boolean);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function holdsIn(version: string, project: string, tarballs: string): boolean {
  cpSync(join(import.meta.dirname, "suite"), project, { recursive: true });
  for (const file of readdirSync(project).filter((each) => each.endsWith(".suite.ts")))
    cpSync(join(project, file), join(project, file.replace(".suite.ts", ".test.ts")));
  const own = packed.map((name) => [`@statewright/${name}`, `file:${join(tarballs, `${name}.tgz`)}`]);
  const dependencies = {
    ...Object.fromEntries(own),
    vitest: version,
    zod: "4",
    "@types/node": "24",
    typescript: "5.9",
  };
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
  const temporary = join(project, "temporary");
  mkdirSync(temporary);
  const install = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
  if (!step(`install vitest ${version}`, "npm", install, project).good) return false;
  const found = JSON.parse(readFileSync(join(project, "node_modules/vitest/package.json"), "utf8")) as {
    readonly version: string;
  };
  const name = `vitest ${found.version}`;
  const vitest = join(project, "node_modules/vitest/vitest.mjs");
  const good = [step(`${name}: types`, process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], project).good];
  good.push(step(`${name}: a run is exported`, process.execPath, ["export.ts"], project).good);
  const before = filesIn(project);
  for (const pool of ["forks", "threads"]) {
    const { good: passed, said } = step(
      `${name}: ${pool}`,
      process.execPath,
      [vitest, "run", `--pool=${pool}`],
      project,
      {
        TMPDIR: temporary,
      },
    );
    good.push(passed && holds(`${name}: ${pool}: the table`, /shop +3\/3 100 % +5\/6 +83 %/.test(said), said));
    const svg = join(project, "graphs/shop.svg");
    const red =
      existsSync(svg) && /class="edge route bad" data-id="review [^"]* __end__"/.test(readFileSync(svg, "utf8"));
    good.push(holds(`${name}: ${pool}: the picture has the untested edge in red`, red, said));
    rmSync(join(project, "graphs"), { recursive: true, force: true });
    const left = [...filesIn(project).filter((file) => !before.includes(file)), ...oursIn(temporary)];
    good.push(holds(`${name}: ${pool}: no file is left`, left.length === 0, left.join("\n")));
  }
  const strict = step(`${name}: a threshold`, process.execPath, [vitest, "run"], project, { STRICT: "1" }, 1);
  good.push(strict.good && holds(`${name}: the threshold says why`, /less than 100 %/.test(strict.said), strict.said));
  good.push(step(`${name}: watch mode, run again twice`, process.execPath, ["watch.ts"], project).good);
  return good.every(Boolean);
}

/** Files of the project; what npm and vitest keep for themselves aside. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (file) => !file.startsWith("node_modules") && !file.startsWith("temporary"),
  );
}

function oursIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((file) => file.includes("statewright"));
}

function step(
  what: string,
  program: string,
  args: readonly string[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
  expected = 0,
): { readonly good: boolean; readonly said: string } {
  const windows = process.platform === "win32";
  const path = [join(root, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH: path, NO_COLOR: "1", CI: "1", ...more };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: "utf8", shell: windows });
  const said = `${stdout}${stderr}`;
  return { good: holds(what, status === expected, said), said };
}

function holds(what: string, good: boolean, said: string): boolean {
  console.log(`${good ? "ok    " : "FAILED"} ${what}`);
  if (!good) console.error(said);
  return good;
}
