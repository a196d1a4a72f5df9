/**
 * A consumer project in a temporary folder: the declarations of the packages as published, compiled by TypeScript 7 and
 * 5.9, and read by the language service of TypeScript 5.9, which editors use.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../../..", import.meta.url));
const repository = join(packages, "..");
const own = join(packages, "statewright");
const ownPackages = ["core", "store-kit", "sqlite", "agent", "ai-sdk", "testing", "statewright"];
const libraries = ["zod", "xstate", "vitest"];

/** Compilers of the consumer project. */
export const compilers = {
  "TypeScript 7": join(repository, "node_modules/typescript/bin/tsc"),
  "TypeScript 5.9": join(own, "node_modules/typescript-5.9/bin/tsc"),
} as const;

export type CompilerName = keyof typeof compilers;

/** A diagnostic: file relative to the project, line from 1, and the message with its indented further lines. */
export interface Diagnostic {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

export interface TypeProject {
  readonly folder: string;
  /** Writes a file of the project. */
  write(file: string, text: string): Promise<void>;
  /** Compiles all files of the project. */
  compile(compiler: CompilerName): Promise<readonly Diagnostic[]>;
  remove(): Promise<void>;
}

/** Creates the project. Emits the declarations anew, so that no build is needed and none is stale. */
export async function createTypeProject(): Promise<TypeProject> {
  const folder = await mkdtemp(join(tmpdir(), "statewright-mistakes-"));
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "@statewright"), { recursive: true });
  for (const library of libraries)
    await symlink(join(own, "node_modules", library), join(modules, library), "junction");
  for (const name of ownPackages) await linkLibraries(name, join(modules, packageFolder(name)));
  await emitDeclarations(folder, modules);
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: join(repository, "tsconfig.base.json"), compilerOptions, include: ["src"] }),
  );
  return {
    folder,
    write: async (file, text) => {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), text);
    },
    compile: async (compiler) => parseDiagnostics(await runTsc(compilers[compiler], ["-p", folder], folder)),
    remove: () => rm(folder, { recursive: true }),
  };
}

/** Loads no platform types: neither the DOM nor Node.js. */
export const compilerOptions = {
  lib: ["es2023", "esnext.disposable"],
  composite: false,
  isolatedDeclarations: false,
  declarationMap: false,
  emitDeclarationOnly: false,
  noEmit: true,
};

function packageFolder(name: string): string {
  return name === "statewright" ? name : `@statewright/${name}`;
}

/** Links the dependencies of a package other than its siblings, which resolve to the emitted declarations. */
async function linkLibraries(name: string, target: string): Promise<void> {
  const manifest = JSON.parse(await readFile(join(packages, name, "package.json"), "utf8"));
  await mkdir(join(target, "node_modules"), { recursive: true });
  await writeFile(
    join(target, "package.json"),
    JSON.stringify({ name: manifest.name, type: "module", exports: manifest.publishConfig.exports }),
  );
  for (const library of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    if (library === "statewright" || library.startsWith("@statewright/")) continue;
    const source = [name, "statewright"].map((at) => join(packages, at, "node_modules", library)).find(existsSync);
    if (source === undefined) continue;
    await mkdir(dirname(join(target, "node_modules", library)), { recursive: true });
    await symlink(source, join(target, "node_modules", library), "junction");
  }
}

/** Emits the declarations of each package. They are syntactic, so that errors of unresolved imports do not matter. */
async function emitDeclarations(folder: string, modules: string): Promise<void> {
  const flags = ["--noCheck", "--emitDeclarationOnly", "--declarationMap", "false"];
  await Promise.all(
    ownPackages.map(async (name) => {
      const dist = join(modules, packageFolder(name), "dist");
      const buildInfo = join(folder, `${name}.tsbuildinfo`);
      const args = ["-p", join(packages, name), ...flags, "--outDir", dist, "--tsBuildInfoFile", buildInfo];
      const output = await runTsc(compilers["TypeScript 7"], args, folder);
      if (!existsSync(join(dist, "index.d.ts"))) throw new Error(`the declarations of ${name} are missing:\n${output}`);
    }),
  );
}

/** Runs a compiler and returns its output; an exit code for type errors is not a failure. */
function runTsc(compiler: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [compiler, ...args, "--pretty", "false"],
      { cwd, maxBuffer: 1e8 },
      (_error, output, problems) => resolve(output + problems),
    );
  });
}

function parseDiagnostics(output: string): readonly Diagnostic[] {
  const diagnostics: { file: string; line: number; message: string }[] = [];
  for (const text of output.split("\n")) {
    const found = /^(.*)\((\d+),\d+\): error TS\d+: (.*)$/.exec(text);
    const last = diagnostics.at(-1);
    if (found !== null) diagnostics.push({ file: found[1] ?? "", line: Number(found[2]), message: found[3] ?? "" });
    else if (text.startsWith("  ") && last !== undefined) last.message += `\n${text}`;
    else if (text.trim() !== "") diagnostics.push({ file: "", line: 0, message: text });
  }
  return diagnostics;
}
