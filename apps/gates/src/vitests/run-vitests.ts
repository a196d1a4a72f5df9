/**
 * Tests the packed test kit as an installed package: with the latest vitest of each supported major version, in both
 * pools, in watch mode, without leftover files.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";

const root = join(import.meta.dirname, "../../../..");
const packedPackages = ["core", "pictures", "sqlite", "testing"];
const versions = ["4", "5"];

/** Runs the gate. Returns true if all checks passed. */
export async function runVitests(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "vitests-"));
  try {
    const tarballs = join(folder, "tarballs");
    const pack = [
      join(root, "scripts/pack-package.mjs"),
      tarballs,
      ...packedPackages.map((name) => `packages/${name}`),
    ];
    if (!runStep("pack", { args: pack, cwd: root }).good) return false;
    return versions.map((version) => checkVersion(version, join(folder, version), tarballs)).every(Boolean);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function checkVersion(version: string, project: string, tarballs: string): boolean {
  cpSync(join(import.meta.dirname, "suite"), project, { recursive: true });
  for (const file of readdirSync(project).filter((each) => each.endsWith(".suite.ts")))
    cpSync(join(project, file), join(project, file.replace(".suite.ts", ".test.ts")));
  const own = packedPackages.map((name) => [`@statewright/${name}`, `file:${join(tarballs, `${name}.tgz`)}`]);
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
  if (!runStep(`install vitest ${version}`, { program: "npm", args: install, cwd: project }).good) return false;
  const manifest = JSON.parse(readFileSync(join(project, "node_modules/vitest/package.json"), "utf8")) as {
    readonly version: string;
  };
  const name = `vitest ${manifest.version}`;
  const vitest = join(project, "node_modules/vitest/vitest.mjs");
  const results = [
    runStep(`${name}: types`, { args: ["node_modules/typescript/bin/tsc", "-p", "."], cwd: project }).good,
  ];
  results.push(runStep(`${name}: export of a run as a test`, { args: ["export.ts"], cwd: project }).good);
  const filesBefore = listFiles(project);
  for (const pool of ["forks", "threads"]) {
    const { good: passed, output } = runStep(`${name}: ${pool}`, {
      args: [vitest, "run", `--pool=${pool}`],
      cwd: project,
      extraEnv: { TMPDIR: temporary },
    });
    results.push(
      passed &&
        reportResult(
          `${name}: ${pool}: the table`,
          /shop +3\/3 100 % +5\/6 +83 %/.test(output) ? "ok" : "failed",
          output,
        ),
    );
    const svg = join(project, "graphs/shop.svg");
    const hasRedEdge =
      existsSync(svg) && /class="edge route bad" data-id="review [^"]* __end__"/.test(readFileSync(svg, "utf8"));
    results.push(
      reportResult(
        `${name}: ${pool}: the picture shows the untested edge in red`,
        hasRedEdge ? "ok" : "failed",
        output,
      ),
    );
    rmSync(join(project, "graphs"), { recursive: true, force: true });
    const leftovers = [...listFiles(project).filter((file) => !filesBefore.includes(file)), ...listOwnFiles(temporary)];
    results.push(
      reportResult(
        `${name}: ${pool}: no leftover files`,
        leftovers.length === 0 ? "ok" : "failed",
        leftovers.join("\n"),
      ),
    );
  }
  const strict = runStep(`${name}: a threshold`, {
    args: [vitest, "run"],
    cwd: project,
    extraEnv: { STRICT: "1" },
    exitCode: 1,
  });
  results.push(
    strict.good &&
      reportResult(
        `${name}: the threshold failure states its reason`,
        /expected at least 100 %, got \d+ %/.test(strict.output) ? "ok" : "failed",
        strict.output,
      ),
  );
  results.push(runStep(`${name}: watch mode, two reruns`, { args: ["watch.ts"], cwd: project }).good);
  return results.every(Boolean);
}

/** Lists the files of the project, without those of npm and vitest. */
function listFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (file) => !file.startsWith("node_modules") && !file.startsWith("temporary"),
  );
}

function listOwnFiles(folder: string): readonly string[] {
  return readdirSync(folder).filter((file) => file.includes("statewright"));
}

/** Program of a step, and its expected exit code. */
interface StepProgram {
  /** Default: the running Node. */
  readonly program?: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly extraEnv?: Readonly<Record<string, string>>;
  /** Default 0. */
  readonly exitCode?: number;
}

function runStep(
  label: string,
  { program = process.execPath, args, cwd, extraEnv = {}, exitCode = 0 }: StepProgram,
): { readonly good: boolean; readonly output: string } {
  const windows = process.platform === "win32";
  const path = [join(root, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH: path, NO_COLOR: "1", CI: "1", ...extraEnv };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: "utf8", shell: windows });
  const output = `${stdout}${stderr}`;
  return { good: reportResult(label, status === exitCode ? "ok" : "failed", output), output };
}

function reportResult(label: string, result: "ok" | "failed", output: string): boolean {
  console.log(`${result === "ok" ? "ok    " : "FAILED"} ${label}`);
  if (result === "failed") console.error(output);
  return result === "ok";
}
