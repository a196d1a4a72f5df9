/** A user's project in a folder of its own: core's declarations as they ship, nothing else of this repository, and the compiler. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const core = fileURLToPath(new URL("../..", import.meta.url));
const repository = join(core, "../..");
const compiler = join(repository, "node_modules/typescript/bin/tsc");

/** What the compiler said: its messages by line, how much work it was, and what it emitted. */
export interface Compiled {
  readonly errors: readonly { readonly line: number; readonly message: string }[];
  readonly instantiations: number;
  readonly types: number;
  readonly checkSeconds: number;
}

export interface Consumer {
  /** The folder of core's declarations. */
  readonly declarations: string;
  /** Compile one module, alone, with these options over those of the repository. */
  compile(name: string, text: string, options?: Readonly<Record<string, unknown>>): Promise<Compiled>;
  /** The declarations that a module compiled with `declaration` gave. */
  declarationOf(name: string): Promise<string>;
  remove(): Promise<void>;
}

/** Make the project. The declarations are emitted anew, so that no build is needed and none can be stale. */
export async function consumer(): Promise<Consumer> {
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

/** Nothing of the platform is loaded unless a test says so: neither the DOM nor the types of Node. */
const base: Readonly<Record<string, unknown>> = {
  lib: ["es2023"],
  composite: false,
  isolatedDeclarations: false,
  declarationMap: false,
  emitDeclarationOnly: false,
  noEmit: true,
};

/** Options with which a module is emitted, for {@link Consumer.declarationOf}. */
export const emitted: Readonly<Record<string, unknown>> = {
  noEmit: false,
  declaration: true,
  emitDeclarationOnly: true,
  outDir: "out",
};

/** What the compiler prints. It ends with an error where it finds one in the program, which is what tests look at. */
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
