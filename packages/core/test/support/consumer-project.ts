/**
 * A consumer project in a temporary folder: the shipped declarations of core and the compiler, nothing else of this
 * repository.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const core = fileURLToPath(new URL("../..", import.meta.url));
const repository = join(core, "../..");
const compiler = join(repository, "node_modules/typescript/bin/tsc");

/** Compiler output: diagnostics by line, and cost. */
export interface Compiled {
  readonly errors: readonly { readonly line: number; readonly message: string }[];
  readonly instantiations: number;
  readonly types: number;
  readonly checkSeconds: number;
}

export interface Consumer {
  /** Folder of the declarations of core. */
  readonly declarations: string;
  /** Compiles one module with these options in addition to the options of the repository. */
  compile(name: string, text: string, options?: Readonly<Record<string, unknown>>): Promise<Compiled>;
  /** Returns the emitted declarations of a module compiled with `declaration`. */
  declarationOf(name: string): Promise<string>;
  remove(): Promise<void>;
}

/** Creates the project. Emits the declarations anew, so that no build is needed and none is stale. */
export async function createConsumerProject(): Promise<Consumer> {
  const folder = await mkdtemp(join(tmpdir(), "statewright-types-"));
  const modules = join(folder, "node_modules");
  const declarations = join(modules, "@statewright/core/dist");
  await mkdir(declarations, { recursive: true });
  for (const library of ["zod", "xstate", "immer", "p-queue"])
    await symlink(join(core, "node_modules", library), join(modules, library), "junction");
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(
    join(modules, "@statewright/core/package.json"),
    JSON.stringify({ name: "@statewright/core", type: "module", exports: "./dist/index.d.ts" }),
  );
  const emit = ["--noCheck", "--emitDeclarationOnly", "--declarationMap", "false"];
  const emitted = await tsc(
    ["-p", core, ...emit, "--outDir", declarations, "--tsBuildInfoFile", join(folder, "core.tsbuildinfo")],
    folder,
  );
  if (emitted !== "") throw new Error(`core's declarations could not be emitted:\n${emitted}`);

  return {
    declarations,
    compile: async (name, text, options = {}) => {
      const project = join(folder, name);
      await mkdir(project, { recursive: true });
      await writeFile(join(project, "index.ts"), text);
      await writeFile(
        join(project, "tsconfig.json"),
        JSON.stringify({
          extends: join(repository, "tsconfig.base.json"),
          compilerOptions: { ...base, ...options },
          include: ["."],
        }),
      );
      return read(await tsc(["-p", project, "--extendedDiagnostics", "--singleThreaded"], folder));
    },
    declarationOf: (name) => readFile(join(folder, name, "out/index.d.ts"), "utf8"),
    remove: () => rm(folder, { recursive: true }),
  };
}

/** Loads no platform types unless a test asks for them: neither the DOM nor Node.js. */
const base: Readonly<Record<string, unknown>> = {
  lib: ["es2023"],
  composite: false,
  isolatedDeclarations: false,
  declarationMap: false,
  emitDeclarationOnly: false,
  noEmit: true,
};

/** Compiler options to emit a module for {@link Consumer.declarationOf}. */
export const emitted: Readonly<Record<string, unknown>> = {
  noEmit: false,
  declaration: true,
  emitDeclarationOnly: true,
  outDir: "out",
};

/** Runs the compiler and returns its output; an exit code for type errors is not a failure. */
function tsc(args: readonly string[], folder: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [compiler, ...args, "--pretty", "false"],
      { cwd: dirname(folder), maxBuffer: 1e8 },
      (_error, output, problems) => resolve(output + problems),
    );
  });
}

function read(output: string): Compiled {
  const errors: { line: number; message: string }[] = [];
  for (const line of output.split("\n")) {
    const error = /\((\d+),\d+\): error TS\d+: (.*)$/.exec(line);
    const last = errors.at(-1);
    if (error !== null) errors.push({ line: Number(error[1]), message: error[2] ?? "" });
    else if (line.startsWith("  ") && last !== undefined) last.message += `\n${line}`;
  }
  const count = (label: string): number => Number(new RegExp(`^${label}: +([\\d.]+)`, "m").exec(output)?.[1]);
  const compiled = {
    errors,
    instantiations: count("Instantiations"),
    types: count("Types"),
    checkSeconds: count("Check time"),
  };
  if (!Number.isInteger(compiled.instantiations)) throw new Error(`the compiler did not say what it did:\n${output}`);
  return compiled;
}
