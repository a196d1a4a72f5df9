/**
 * B22: CPU time of a fresh process, from its start to the end of its first saved run. Statewright runs in its published
 * form, as installed by npm.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Case, Contender, Role } from "../case.ts";
import type { Peers } from "../peers/langgraph.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";

/** Empty unless the packages of Statewright are installed. */
export function createColdRunCases({
  installed,
  langgraphEntry,
}: Pick<Peers, "installed" | "langgraphEntry">): readonly Case[] {
  const own = installed.find(({ main }) => main === "statewright");
  if (own === undefined) return [];
  const { folder } = own;
  return [
    {
      id: "B22",
      title: "fresh process, from its start to the end of a first saved run of one node",
      unit: "process",
      budget: { cpuUs: 125_000, text: "125 ms" },
      size: 1,
      contenders: [
        createContender("statewright", "ours", { program: "cold-statewright.mjs.txt", folder }),
        createContender("statewright, with Node's compile cache", "ours", {
          program: "cold-statewright.mjs.txt",
          folder,
          compileCache: true,
        }),
        ...(langgraphEntry === undefined
          ? []
          : [
              createContender("LangGraph.js", "peer", {
                program: "cold-langgraph.mjs.txt",
                folder,
                entry: langgraphEntry,
              }),
            ]),
        createContender("better-sqlite3, one transaction", "limit", { program: "cold-raw.mjs.txt", folder }),
      ],
      checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.6 }],
    },
  ];
}

interface ColdProgram {
  /** File in `peers/programs`; its output ends with the CPU time of the process in microseconds. */
  readonly program: string;
  /** Folder from which the program imports packages. */
  readonly folder: string;
  /** URL of the module of a peer. */
  readonly entry?: string;
  readonly compileCache?: boolean;
}

function createContender(
  name: string,
  role: Role,
  { program, folder, entry = "", compileCache }: ColdProgram,
): Contender {
  const text = readFileSync(new URL(`../peers/programs/${program}`, import.meta.url), "utf8");
  return {
    name,
    role,
    ownProcesses: true,
    open: () => {
      const cache = createScratchFile("cache");
      const env = compileCache === true ? { ...process.env, NODE_COMPILE_CACHE: cache.path } : process.env;
      return {
        run: async () => runProcess(text, { cwd: folder, entry, env }),
        close: () => {
          cache.remove();
          return undefined;
        },
      };
    },
  };
}

function runProcess(
  text: string,
  { cwd, entry, env }: { readonly cwd: string; readonly entry: string; readonly env: NodeJS.ProcessEnv },
): Sample {
  const file = createScratchFile("cold.db");
  const wall = performance.now();
  const args = ["--no-warnings", "--input-type=module", "--eval", text, file.path, entry];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: "utf8" });
  const wallUs = (performance.now() - wall) * 1_000;
  file.remove();
  const cpuUs = Number(stdout.trim().split("\n").at(-1));
  if (stdout === "" || !Number.isFinite(cpuUs))
    throw new Error(
      `B22: expected the CPU time of the program, got ${JSON.stringify(stdout)}: ${stderr.slice(0, 2_000)}`,
    );
  return { cpuUs, wallUs };
}
