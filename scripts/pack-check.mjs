// Checks every package as installed by users. Checks the docs, SKILL.md and their links in the tarball, runs publint
// and attw, installs the tarballs into an empty project, imports and requires them on the oldest and the newest Node,
// and type-checks them with the oldest and the newest TypeScript with skipLibCheck off. Compiles the first program of
// the README with each TypeScript and runs it on each Node, against a local server with the provider's wire format.
// Type-checks the folder `examples` of `statewright`, runs programs and tests of it, and runs the tests of all programs
// of the docs with the installed packages: each test compares the output of a program with its page.
// Needs the package registry.
//
// ```
// node scripts/pack-check.mjs [--tarballs <folder>]    checks the tarballs of a release, in place of new ones
// ```

import { spawn, spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { anthropicServer } from "../packages/statewright/test/support/anthropic-server.ts";
import { bundlePackages } from "./bundle.mjs";
import { copyDocsPrograms, listTestDependencies } from "./copy-docs-programs.mjs";
import { packPackage } from "./pack-package.mjs";
import { findDocProblems } from "./package-docs.mjs";
import { createExampleFiles } from "./package-examples.mjs";
import { getTarballName } from "./release/packed-package.mjs";

// All packages load on the oldest version. SQLite needs the second version, and throws an error with this requirement
// on the oldest version.
const OLDEST_NODE = "22.12.0";
const OLDEST_NODE_WITH_SQLITE = "22.14.0";
const TYPESCRIPTS = ["5.9", "7"];
const SAMPLE_PROGRAMS = ["tour/run.ts", "graphs/subgraphs.ts", "agents/agents.ts", "tools/plugins.ts"];
const ended = "done: 4 messages saved in agent.db";
const emitFlags = [
  "--module",
  "nodenext",
  "--target",
  "es2023",
  "--strict",
  "--types",
  "node",
  "--skipLibCheck",
  "false",
];

const windows = process.platform === "win32";
const bin = join(process.cwd(), "node_modules/.bin");
const project = mkdtempSync(join(tmpdir(), "packed-"));
const problems = [];

try {
  await main();
} finally {
  rmSync(project, { recursive: true, force: true });
}
for (const problem of problems) console.error(`pack-check: ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;

async function main() {
  const packages = readdirSync("packages").map((name) => {
    const folder = join("packages", name);
    return { folder, ...JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) };
  });
  const { tarballs: given } = parseArgs({ options: { tarballs: { type: "string" } } }).values;
  const tarballs =
    given === undefined
      ? await packAll(packages)
      : packages.map((manifest) => join(resolve(given), getTarballName(manifest)));
  if (problems.length > 0) return;

  packages.forEach(({ name }, index) => {
    runStep(`publint ${name}`, "publint", [tarballs[index], "--strict"]);
    runStep(`attw ${name}`, "attw", [tarballs[index], "--profile", "esm-only"]);
  });

  attempt("docs, SKILL.md and links in the tarballs", () => checkDocs(packages, tarballs));

  const entries = packages.flatMap(({ name, exports }) => Object.keys(exports).map((entry) => name + entry.slice(1)));
  installInto(project, Object.fromEntries(packages.map(({ name }, index) => [name, `file:${tarballs[index]}`])));
  if (problems.length > 0) return;

  const oldest = installNode(OLDEST_NODE);
  const nodes = { [process.version]: process.execPath, [`v${OLDEST_NODE}`]: oldest };
  const nodesWithSqlite = {
    [process.version]: process.execPath,
    [`v${OLDEST_NODE_WITH_SQLITE}`]: installNode(OLDEST_NODE_WITH_SQLITE),
  };
  for (const [version, node] of Object.entries(nodes)) {
    // An entry that imports the user's vitest cannot be loaded outside vitest.
    for (const entry of entries.filter((entry) => !entry.endsWith("/vitest"))) {
      const name = JSON.stringify(entry);
      const load = `await import(${name}); process.getBuiltinModule("module").createRequire(import.meta.url)(${name})`;
      runStep(`load ${entry} on Node ${version}`, node, ["--input-type=module", "-e", load], { cwd: project });
    }
  }

  const imports = entries.map((entry, index) => `import * as entry${index} from "${entry}";\nvoid entry${index};\n`);
  writeFileSync(join(project, "user.ts"), imports.join(""));
  const compilerOptions = {
    module: "nodenext",
    target: "es2023",
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    types: ["node"],
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["user.ts"] }));
  copyFileSync("packages/statewright/test/docs/start/assistant.ts", join(project, "assistant.ts"));
  for (const version of TYPESCRIPTS) {
    const tsc = join(project, `node_modules/typescript-${version}/bin/tsc`);
    runStep(`type-check with TypeScript ${version}`, process.execPath, [tsc, "-p", "."], { cwd: project });
    const outDir = `compiled-${version}`;
    const emit = ["--ignoreConfig", "assistant.ts", "--outDir", outDir, ...emitFlags].filter(
      (flag) => flag !== "--ignoreConfig" || version === "7",
    );
    if (
      !runStep(`compile the first program with TypeScript ${version}`, process.execPath, [tsc, ...emit], {
        cwd: project,
      })
    )
      continue;
    for (const [name, node] of Object.entries(nodesWithSqlite)) {
      const what = `the first program, compiled by TypeScript ${version}, on Node ${name}`;
      await runFirstProgram(what, node, outDir, (code, printed) => code === 0 && printed.includes(ended));
    }
    const what = `the first program on Node ${OLDEST_NODE} fails with its requirement`;
    await runFirstProgram(what, oldest, outDir, (code, printed) => code === 1 && printed.includes("Use Node 22.14"));
  }
  checkExamples();
  checkDocsPrograms();
}

/** Builds and packs all packages into the project's folder, and returns the tarballs. */
async function packAll(packages) {
  if (!runStep("types", "tsc", ["-b", ...packages.map(({ folder }) => folder)])) return [];
  await bundlePackages(".");
  return packages.map((manifest) => {
    const tarball = join(project, getTarballName(manifest));
    attempt(`pack ${manifest.name} with its docs`, () => packPackage(manifest.folder, tarball));
    return tarball;
  });
}

/** Type-checks a copy of the packed programs, runs some of them, each in its own folder, and runs its tests. */
function checkExamples() {
  const examples = join(project, "examples");
  cpSync(join(project, "node_modules/statewright/examples"), examples, { recursive: true });
  for (const version of TYPESCRIPTS) {
    const tsc = join(project, `node_modules/typescript-${version}/bin/tsc`);
    runStep(`type-check the examples with TypeScript ${version}`, process.execPath, [tsc, "-p", "."], {
      cwd: examples,
    });
  }
  for (const program of SAMPLE_PROGRAMS)
    runStep(`run examples/${program}`, process.execPath, [basename(program)], {
      cwd: join(examples, dirname(program)),
    });
  runTests("the tests in the folder examples", examples);
}

/** Runs the tests of all programs of the docs, with the installed packages in place of the sources. */
function checkDocsPrograms() {
  const folder = join(project, "programs");
  copyDocsPrograms(".", folder);
  runTests("the tests of the programs of the docs", folder);
}

function runTests(what, cwd) {
  const vitest = join(project, "node_modules/vitest/vitest.mjs");
  // Programs start processes: on a busy machine a test takes longer than the default of 5 seconds.
  runStep(what, process.execPath, [vitest, "run", "--testTimeout=120000"], {
    cwd,
    env: { NODE_COMPILE_CACHE: join(project, "compiled") },
  });
}

/** Checks the unpacked tarballs: pages and SKILL.md exist, and every relative link leads to a file in the tarball. */
function checkDocs(packages, tarballs) {
  const wrong = packages.flatMap(({ name }, index) => {
    const unpacked = join(project, "unpacked", toSlug(name));
    mkdirSync(unpacked, { recursive: true });
    const { status, stderr } = spawnSync("tar", ["-xzf", tarballs[index]], { cwd: unpacked, encoding: "utf8" });
    return status === 0 ? findDocProblems(join(unpacked, "package"), name) : [`${name}: ${stderr}`];
  });
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
}

/**
 * Runs the compiled program as a user does, with the provider's own client, a new folder, and the local server
 * instead of the provider.
 */
async function runFirstProgram(what, node, folder, isGood) {
  const server = await anthropicServer();
  const cwd = mkdtempSync(join(project, "run-"));
  const env = { ...process.env, ANTHROPIC_BASE_URL: server.baseUrl, ANTHROPIC_API_KEY: "not-a-key" };
  const child = spawn(node, [join(project, folder, "assistant.js")], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk) => {
      printed += chunk;
    });
  }
  const code = await new Promise((resolve) => child.on("close", resolve));
  await server.close();
  const good = isGood(code, printed);
  console.log(`${good ? "ok    " : "FAILED"} ${what}`);
  if (!good) problems.push(`${what} exited with ${code}:\n${printed}`);
}

/** Installs the packed packages and their peer dependencies into an empty project. */
function installInto(folder, packed) {
  const typescripts = TYPESCRIPTS.map((version) => [`typescript-${version}`, `npm:typescript@${version}`]);
  const [examples] = createExampleFiles(".");
  const { dependencies } = JSON.parse(examples.content);
  const brought = Object.fromEntries(Object.entries(dependencies).filter(([name]) => !(name in packed)));
  // Needed by the AI SDK's own types with skipLibCheck off.
  brought["@types/json-schema"] = "^7.0.15";
  const manifest = {
    private: true,
    type: "module",
    dependencies: { ...listTestDependencies("."), ...brought, ...Object.fromEntries(typescripts), ...packed },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  runStep("install into an empty project", "npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts"], {
    cwd: folder,
  });
}

function installNode(version) {
  const platform = windows ? "win" : process.platform;
  const name = `node-${platform === "darwin" && process.arch === "arm64" ? "bin-" : ""}${platform}-${process.arch}`;
  const folder = join(project, `node-${version}`);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies: { [name]: version } }));
  runStep(`Node ${version}`, "npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: folder });
  return join(folder, "node_modules", name, "bin", windows ? "node.exe" : "node");
}

function attempt(what, work) {
  let failure;
  try {
    work();
  } catch (error) {
    failure = error;
  }
  console.log(`${failure === undefined ? "ok    " : "FAILED"} ${what}`);
  if (failure !== undefined) problems.push(`${what} failed: ${failure.message}`);
}

function runStep(what, program, args, { cwd, env: added } = {}) {
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter), ...added };
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env,
    encoding: "utf8",
    shell: windows,
    maxBuffer: 2 ** 28,
  });
  console.log(`${status === 0 ? "ok    " : "FAILED"} ${what}`);
  if (status !== 0) problems.push(`${what} failed: ${error?.message ?? ""}\n${stdout ?? ""}${stderr ?? ""}`);
  return status === 0;
}

function toSlug(name) {
  return name.replace("@", "").replace("/", "-");
}
