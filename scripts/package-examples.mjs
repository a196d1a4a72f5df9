// Lists the programs of the docs for the folder `examples` in the tarball of `statewright`: the programs of
// packages/*/test/docs and apps/examples/src, a package.json with their dependencies, and a README. Used by
// scripts/package-docs.mjs.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** Returns the folders with programs, by their folder in the tarball. */
function listSources(root) {
  const packages = readdirSync(join(root, "packages")).filter(
    (name) => name !== "statewright" && existsSync(join(root, "packages", name, "test/docs")),
  );
  return [
    { from: "packages/statewright/test/docs", to: "examples" },
    ...packages.map((name) => ({ from: `packages/${name}/test/docs`, to: `examples/packages/${name}` })),
    { from: "apps/examples/src", to: "examples/apps" },
    { from: "apps/examples/tools/typescript", to: "examples/tools" },
  ];
}

/** Returns the programs as `from`, the path in the repository, and `to`, the path in the tarball. */
export function listExamples(root) {
  return listSources(root).flatMap(({ from, to }) =>
    readdirSync(join(root, from), { recursive: true, encoding: "utf8" })
      .map((file) => file.replaceAll("\\", "/"))
      .filter(
        (file) =>
          /(?:\.(?:ts|mjs|json|yaml)|Dockerfile|\.dockerignore)$/.test(file) && isProgram(join(root, from, file)),
      )
      .sort()
      .map((file) => ({ from: posix.join(from, file), to: posix.join(to, file) })),
  );
}

/** Returns the other files of the folder: package.json and README.md, by their path in the tarball. */
export function createExampleFiles(root) {
  return [
    { path: "examples/package.json", content: `${JSON.stringify(createManifest(root), undefined, 2)}\n` },
    { path: "examples/tsconfig.json", content: `${JSON.stringify(tsconfig, undefined, 2)}\n` },
    { path: "examples/README.md", content: createReadme(root) },
  ];
}

/** Returns the package names that a program imports, Node's own modules excluded. */
export function listImportedPackages(code) {
  const specifiers = [...code.matchAll(/^(?:import|export|\}).*?"([^"]+)";/gm)].map(([, specifier]) => specifier);
  const bare = specifiers.filter((specifier) => !/^(?:\.|node:)/.test(specifier));
  return [...new Set(bare.map((name) => name.split("/", name.startsWith("@") ? 2 : 1).join("/")))].sort();
}

const tsconfig = {
  compilerOptions: {
    module: "nodenext",
    target: "es2023",
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ["node"],
  },
};

/** A test that needs files of the repository stays there. */
function isProgram(file) {
  if (!file.endsWith(".test.ts")) return !file.includes(join("docs", "pictures"));
  const code = readFileSync(file, "utf8");
  return !/"(?:\.\.\/){2,}/.test(code) && !/\.\.\/(?:support|fixtures)\//.test(code);
}

function createManifest(root) {
  const packages = new Map(
    readdirSync(join(root, "packages"))
      .map((name) => join(root, "packages", name, "package.json"))
      .filter((file) => existsSync(file))
      .map((file) => JSON.parse(readFileSync(file, "utf8")))
      .map(({ name, version }) => [name, version]),
  );
  const catalog = readFileSync(join(root, "pnpm-workspace.yaml"), "utf8");
  const used = listExamples(root).flatMap(({ from }) => listImportedPackages(readFileSync(join(root, from), "utf8")));
  const names = [...new Set([...used, "@types/node"])].sort();
  const version = (name) => {
    if (packages.has(name)) return `^${packages.get(name)}`;
    const found = new RegExp(`^ {2}"?${name}"?: (\\S+)$`, "m").exec(catalog);
    if (found === null)
      throw new Error(`package-examples: expected a version of "${name}" in pnpm-workspace.yaml, got none. Add it.`);
    return found[1];
  };
  return {
    name: "statewright-examples",
    private: true,
    type: "module",
    engines: { node: ">=22.18" },
    dependencies: Object.fromEntries(names.map((name) => [name, version(name)])),
  };
}

function createReadme(root) {
  const examples = listExamples(root);
  const paths = new Set(examples.map(({ to }) => to));
  const rows = examples
    .filter(({ to }) => to.endsWith(".ts") && !to.endsWith(".config.ts") && !paths.has(to.replace(/\.ts$/, ".test.ts")))
    .map(({ from, to }) => {
      const path = to.slice("examples/".length);
      const packages = listImportedPackages(readFileSync(join(root, from), "utf8"));
      const command = path.endsWith(".test.ts")
        ? `npx vitest run ${path}`
        : `cd ${posix.dirname(path)} && node ${posix.basename(path)}`;
      return `| \`${command}\` | ${packages.join(", ")} |`;
    });
  return [
    "# Programs of the docs",
    "",
    "Each page of `docs` names its program here. To run one: copy this folder, install, start the program.",
    "",
    "    cp -r node_modules/statewright/examples .",
    "    cd examples && npm install",
    "    cd tour && node run.ts",
    "",
    "Node 22.18 or newer runs the TypeScript files. Start each program in its own folder. A program with a test beside it only exports; the test runs it.",
    "",
    "| command | packages |",
    "|---|---|",
    ...rows,
    "",
  ].join("\n");
}
