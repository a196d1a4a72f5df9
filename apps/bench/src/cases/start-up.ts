/** B10: what an import costs, each in a process of its own, on the built packages: Node would spend its time on TypeScript. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Case, Contender } from "../case.ts";
import type { Sample } from "../measure.ts";
import type { Peers } from "../peers/langgraph.ts";

const packages = new URL("../../../../packages/", import.meta.url);

/** Sends imports between our packages to their built files, as an installed package would. */
const redirect = `
import { registerHooks } from "node:module";
const packages = ${JSON.stringify(packages.href)};
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const source = found.url.startsWith(packages) && found.url.endsWith("/src/index.ts");
    return source ? { ...found, url: found.url.replace("/src/index.ts", "/dist/index.js"), format: "module" } : found;
  },
});
`;

export function startUp({ langgraphEntry }: Peers): readonly Case[] {
  return [importCase("core", 60), importCase("statewright", 120, langgraphEntry)];
}

function importCase(name: string, budgetMs: number, peer?: string): Case {
  const ours = new URL(`${name}/dist/index.js`, packages);
  return {
    id: `B10 ${name}`,
    title: `import of ${name}, above that of an empty process`,
    unit: "import",
    budget: { cpuUs: budgetMs * 1_000, text: `${budgetMs} ms` },
    size: 1,
    contenders: [
      ...(existsSync(fileURLToPath(ours)) ? [imported("statewright", "ours", ours.href)] : []),
      ...(peer === undefined ? [] : [imported("LangGraph.js", "peer", peer)]),
    ],
    ...(peer === undefined ? {} : { checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.5 }] }),
  };
}

function imported(name: string, role: Contender["role"], url: string): Contender {
  return { name, role, elsewhere: true, open: () => ({ run: async () => importOnce(url) }) };
}

/** Import a module by its address, or by its name as it is found from a folder. */
export function importOnce(url: string, cwd?: string): Sample {
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
  if (!line.startsWith("{")) throw new Error(`${url} could not be imported: ${stderr.trim().split("\n").at(-1) ?? ""}`);
  return JSON.parse(line) as Sample;
}
