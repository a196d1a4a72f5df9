// Entry point of all tasks. Installs missing packages, then runs a task with the tools and the Node of this
// repository.
//
// ```
// node scripts/run.mjs demo [arguments]    runs the demo with the arguments
// node scripts/run.mjs test                types, lint, boundaries, tests of all packages, check of the rules table
// node scripts/run.mjs gates:sqlite        thousands of damaged, torn and hostile files: [gate] [seed] [count]
// node scripts/run.mjs example <name>      runs one example of the tools
// node scripts/run.mjs house               metrics of the sources: [--list <row>] [--json] [--root <folder>]
// node scripts/run.mjs rules | bench | fix | boundaries | pack:check
// node scripts/run.mjs pack <folder>       packs the packages for publication as tarballs
// node scripts/run.mjs release [word]      releases all packages under one version; --dry-run publishes nothing
// node scripts/run.mjs gates <gate>        simulations, mutants, kills; apps/gates/src/index.ts lists the gates
// ```
//
// Has no dependencies and uses only syntax of Node 18, because the script runs before the installation.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const modules = join(root, "node_modules");
const stampFile = join(modules, ".installed");
const windows = process.platform === "win32";
const rootPackage = readJson(join(root, "package.json"));

const tasks = {
  demo: (args) => runNode("apps/demo/src/index.ts", args),
  async bench(args) {
    return (await runNode("scripts/bundle.mjs", [])) || runNode("apps/bench/src/index.ts", args);
  },
  // Node keeps the compiled TypeScript: a second example starts in less than half of the time.
  example: (args) => runNode("apps/examples/src/index.ts", args, { NODE_COMPILE_CACHE: join(modules, ".cache/node") }),
  gates: (args) => runNode("apps/gates/src/index.ts", args),
  "gates:sqlite": (args) => runNode("packages/sqlite/test/gates/main.ts", args),
  rules: (args) => runNode("scripts/rules.mjs", args),
  house: (args) => runNode("scripts/house.mjs", args),
  fix: (args) => runTool("biome", ["check", "--write", ".", ...args]),
  pack: (args) => runNode("scripts/pack-package.mjs", args),
  "pack:check": (args) => runNode("scripts/pack-check.mjs", args),
  release: (args) => runNode("scripts/release.mjs", args),
  boundaries: () => runTool("turbo", ["boundaries"]),
  async test(args) {
    // Built once, before concurrent test processes use the bundle.
    await runNode("scripts/bundle-for-tests.mjs", []);
    // High concurrency: the longest task depends on all other packages and comes late in turbo's order, and must
    // start with the first.
    const flags = ["--continue=always", "--output-logs=errors-only", "--log-order=grouped", "--concurrency=14"];
    const turbo = await runTool("turbo", ["run", "check", "lint", "test:scripts", "test", ...flags, ...args]);
    // Not a task of turbo, because turbo refuses a task that calls turbo.
    const boundaries = await tasks.boundaries();
    await runNode("scripts/count-tests.mjs", []);
    // Last, because the check reads the reports of all tests; the reports are incomplete after a failure.
    return turbo || boundaries || tasks.rules(["--check"]);
  },
};

const [task, ...args] = process.argv.slice(2);
if (!Object.hasOwn(tasks, task ?? "")) {
  fail(`unknown task ${JSON.stringify(task ?? "")}. Use one of: ${Object.keys(tasks).join(", ")}.`);
}
await install();
process.exitCode = await tasks[task](args);

/** Installs the packages of the lockfile, unless the last install had the same state. Silent on success. */
async function install() {
  const state = installState();
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === state && listWorkspaceFolders().every(isLinked))
    return;

  rmSync(stampFile, { force: true });
  process.stderr.write("Installing packages ...\n");
  const flags = ["install", "--frozen-lockfile", "--prefer-offline"];
  // `npm run -s` would pass its log level on, and a failure would have no output.
  const env = { ...createEnvironment(), CI: "1", npm_config_loglevel: "warn" };
  const options = { capture: true, env, shell: windows };
  const result = existsSync(join(modules, ".bin/pnpm"))
    ? await run(resolveCommand("pnpm"), flags, options)
    : await run("npx", ["-y", rootPackage.packageManager, ...flags], options);
  if (result.code !== 0) {
    process.stderr.write(result.output);
    fail(`the packages could not be installed (exit code ${result.code}); see the output above. `);
  }
  mkdirSync(modules, { recursive: true });
  writeFileSync(stampFile, state);
}

/** Returns a hash of the inputs of an install: the lockfile, the manifests, the settings of pnpm, and the platform. */
function installState() {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`);
  const manifests = listWorkspaceFolders().map((folder) => join(folder, "package.json"));
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".pnpmfile.cjs", "package.json", ...manifests]) {
    hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest("hex");
}

function listWorkspaceFolders() {
  const folders = ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}`),
  );
  return folders.filter((folder) => existsSync(join(root, folder, "package.json"))).sort();
}

function isLinked(folder) {
  return existsSync(join(root, folder, "node_modules"));
}

/** Runs a TypeScript or JavaScript file with the Node of this repository, on this terminal. `env` is a default. */
async function runNode(file, args, env = {}) {
  if (!existsSync(join(root, file))) fail(`expected the file ${file}, which does not exist.`);
  const { code } = await run(findNodeBinary(), [join(root, file), ...args], {
    env: { ...env, ...createEnvironment() },
  });
  return code;
}

/** Runs a tool of the root's node_modules, on this terminal. */
async function runTool(name, args) {
  const { code } = await run(resolveCommand(name), args, { env: createEnvironment(), shell: windows });
  return code;
}

function resolveCommand(name) {
  const file = join(modules, ".bin", name);
  return windows ? `"${file}.cmd"` : file;
}

function createEnvironment() {
  const { PATH, Path, ...rest } = process.env;
  return {
    ...rest,
    PATH: [dirname(findNodeBinary()), join(modules, ".bin"), PATH ?? Path ?? ""].join(delimiter),
    TURBO_TELEMETRY_DISABLED: "1",
    TURBO_NO_UPDATE_NOTIFIER: "1",
    // The TypeScript compiler is a Go program. A higher limit saves the fifth of its time spent on early garbage
    // collection.
    GOGC: "200",
    DO_NOT_TRACK: "1",
  };
}

/** Returns the Node binary from the registry, installed for this platform; otherwise the Node of this script. */
function findNodeBinary() {
  const names = Object.keys(rootPackage.optionalDependencies).filter((name) => name.startsWith("node-"));
  const found = names.map((name) => join(modules, name, "bin", windows ? "node.exe" : "node")).find(existsSync);
  return found ?? process.execPath;
}

/**
 * Runs a program until its exit. Without `capture`, the program owns the terminal: Ctrl-C reaches the program
 * directly, and this process only waits and returns the exit code of the program.
 */
function run(program, args, { env, capture = false, shell = false }) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      env,
      stdio: capture ? ["ignore", "pipe", "pipe"] : "inherit",
      shell,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text) => (output += text));

    const forward = (signal) => child.kill(signal);
    const wait = () => {};
    process.on("SIGINT", wait).on("SIGTERM", forward).on("SIGHUP", forward);
    const finish = (code) => {
      process.off("SIGINT", wait).off("SIGTERM", forward).off("SIGHUP", forward);
      resolve({ code, output });
    };
    child.on("error", (error) => {
      output += `${program} could not be started: ${error.message}\n`;
      finish(127);
    });
    child.on("close", (code, signal) => finish(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}

function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}

function fail(message) {
  process.stderr.write(`run: ${message}\n`);
  process.exit(1);
}
