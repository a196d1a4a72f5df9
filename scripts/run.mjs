// The one way in: installs what is missing, then runs a task with the tools and the Node of this repository.
//
//   node scripts/run.mjs demo [arguments]    what `npm run demo` runs; the arguments go to the demo
//   node scripts/run.mjs test                types, lint, boundaries, every package's tests, the list of rules
//   node scripts/run.mjs gates:sqlite        damaged, torn and hostile files by the thousand: [gate] [seed] [count]
//   node scripts/run.mjs example <name>      one example of tools, to watch
//   node scripts/run.mjs rules | bench | fix | boundaries | pack:check
//   node scripts/run.mjs pack <folder>       the packages as they are published, as tarballs
//   node scripts/run.mjs gates <gate>        simulations, mutants, kills: apps/gates/src/index.ts says which
//
// It has no dependencies and keeps to the syntax of Node 18, because it starts before anything is installed.

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
  demo: (args) => node("apps/demo/src/index.ts", args),
  async bench(args) {
    return (await node("scripts/bundle.mjs", [])) || node("apps/bench/src/index.ts", args);
  },
  example: (args) => node("apps/examples/src/index.ts", args),
  gates: (args) => node("apps/gates/src/index.ts", args),
  "gates:sqlite": (args) => node("packages/sqlite/test/gates/main.ts", args),
  rules: (args) => node("scripts/rules.mjs", args),
  fix: (args) => tool("biome", ["check", "--write", ".", ...args]),
  pack: (args) => node("scripts/pack-package.mjs", args),
  "pack:check": (args) => node("scripts/pack-check.mjs", args),
  boundaries: () => tool("turbo", ["boundaries"]),
  async test(args) {
    // Made once, before many look for it at the same time.
    await node("scripts/bundle-for-tests.mjs", []);
    // So many at once that the longest, which turbo sees late because it needs all others, begins with the first.
    const flags = ["--continue=always", "--output-logs=errors-only", "--log-order=grouped", "--concurrency=14"];
    const turbo = await tool("turbo", ["run", "check", "lint", "house", "test", ...flags, ...args]);
    // Not a task of turbo: it refuses one that calls turbo.
    const boundaries = await tasks.boundaries();
    await node("scripts/count-tests.mjs", []);
    // Last, because it reads the reports of all tests; after a failure they say nothing.
    return turbo || boundaries || tasks.rules(["--check"]);
  },
};

const [task, ...args] = process.argv.slice(2);
if (!Object.hasOwn(tasks, task ?? "")) {
  fail(`unknown task ${JSON.stringify(task ?? "")}. One of: ${Object.keys(tasks).join(", ")}.`);
}
await install();
process.exitCode = await tasks[task](args);

/** Install the packages of the lockfile, unless the last install was of this very state. Silent when it works. */
async function install() {
  const state = installState();
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === state && workspaceFolders().every(isLinked)) return;

  rmSync(stampFile, { force: true });
  process.stderr.write("Installing packages ...\n");
  const flags = ["install", "--frozen-lockfile", "--prefer-offline"];
  // `npm run -s` would hand its silence on, and a failure would have no words.
  const env = { ...environment(), CI: "1", npm_config_loglevel: "warn" };
  const options = { capture: true, env, shell: windows };
  const result = existsSync(join(modules, ".bin/pnpm"))
    ? await run(command("pnpm"), flags, options)
    : await run("npx", ["-y", rootPackage.packageManager, ...flags], options);
  if (result.code !== 0) {
    process.stderr.write(result.output);
    fail(
      `the packages could not be installed (exit code ${result.code}); the output is above. ` +
        "Check that the package registry can be reached and that this folder can be written, then run the same command again. " +
        "If a package.json was edited, run `npx pnpm install` once to bring pnpm-lock.yaml up to date.",
    );
  }
  mkdirSync(modules, { recursive: true });
  writeFileSync(stampFile, state);
}

/** What an install depends on: the lockfile, the manifests, the settings of pnpm, and the platform. */
function installState() {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`);
  const manifests = workspaceFolders().map((folder) => join(folder, "package.json"));
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".pnpmfile.cjs", "package.json", ...manifests]) {
    hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest("hex");
}

function workspaceFolders() {
  const folders = ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}`),
  );
  return folders.filter((folder) => existsSync(join(root, folder, "package.json"))).sort();
}

function isLinked(folder) {
  return existsSync(join(root, folder, "node_modules"));
}

/** A TypeScript or JavaScript file, run by the Node of this repository, on this terminal. */
async function node(file, args) {
  if (!existsSync(join(root, file))) fail(`${file} does not exist.`);
  const { code } = await run(nodeBinary(), [join(root, file), ...args], { env: environment() });
  return code;
}

/** A tool of the root's node_modules, on this terminal. */
async function tool(name, args) {
  const { code } = await run(command(name), args, { env: environment(), shell: windows });
  return code;
}

function command(name) {
  const file = join(modules, ".bin", name);
  return windows ? `"${file}.cmd"` : file;
}

function environment() {
  const { PATH, Path, ...rest } = process.env;
  return {
    ...rest,
    PATH: [dirname(nodeBinary()), join(modules, ".bin"), PATH ?? Path ?? ""].join(delimiter),
    TURBO_TELEMETRY_DISABLED: "1",
    TURBO_NO_UPDATE_NOTIFIER: "1",
    // The compiler of TypeScript is a Go program, and spends a fifth of its time on garbage that it need not collect yet.
    GOGC: "200",
    DO_NOT_TRACK: "1",
  };
}

/** Node from the registry, installed for this platform; the one that runs this script where there is none. */
function nodeBinary() {
  const names = Object.keys(rootPackage.optionalDependencies).filter((name) => name.startsWith("node-"));
  const found = names.map((name) => join(modules, name, "bin", windows ? "node.exe" : "node")).find(existsSync);
  return found ?? process.execPath;
}

/**
 * Run a program to its end. Without `capture` it owns the terminal: Ctrl-C reaches it from there, so this process
 * only waits, and ends as the program ended.
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
