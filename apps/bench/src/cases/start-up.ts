/**
 * B10: cost of an import of the built packages, in a new process for each sample. Importing the sources would measure
 * Node's type stripping.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Case, Contender } from "../case.ts";
import type { Peers } from "../peers/langgraph.ts";
import type { Sample } from "../sample.ts";

const packages = new URL("../../../../packages/", import.meta.url);

/** Redirects imports between our packages to the built files, as in an installed package. */
const redirect = `
import { registerHooks } from "node:module";
const packages = ${JSON.stringify(packages.href)};
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    if (!found.url.startsWith(packages)) return found;
    const url = found.url.replace(/\\/src\\/([^/]+)\\.ts$/, "/dist/$1.js");
    return url === found.url ? found : { ...found, url, format: "module" };
  },
});
`;

export function createStartUpCases({ langgraphEntry }: Peers): readonly Case[] {
  return [createImportCase("core", 60), createImportCase("statewright", 120, langgraphEntry)];
}

function createImportCase(name: string, budgetMs: number, peer?: string): Case {
  const ours = new URL(`${name}/dist/index.js`, packages);
  return {
    id: `B10 ${name}`,
    title: `import of ${name}, without the start of an empty process`,
    unit: "import",
    budget: { cpuUs: budgetMs * 1_000, text: `${budgetMs} ms` },
    size: 1,
    contenders: [
      ...(existsSync(fileURLToPath(ours)) ? [createImportContender("statewright", "ours", ours.href)] : []),
      ...(peer === undefined ? [] : [createImportContender("LangGraph.js", "peer", peer)]),
    ],
    ...(peer === undefined
      ? {}
      : { checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.5 }] }),
  };
}

function createImportContender(name: string, role: Contender["role"], url: string): Contender {
  return { name, role, ownProcesses: true, open: () => ({ run: async () => measureImport(url) }) };
}

/** Imports a module by URL, or by name as resolved from the folder `cwd`. */
export function measureImport(url: string, cwd?: string): Sample {
  const script = `${redirect}
const cpu = process.cpuUsage();
const wall = performance.now();
await import(${JSON.stringify(url)});
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ cpuUs: user + system, wallUs: (performance.now() - wall) * 1000 }));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
    cwd,
  });
  const line = stdout.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`import of ${url} failed: ${stderr.trim().split("\n").at(-1) ?? ""}`);
  return JSON.parse(line) as Sample;
}
