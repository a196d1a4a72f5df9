/**
 * B22: CPU time of a fresh process, from its start to the end of its first work: a saved run, or an agent. Statewright
 * runs in its published form, as installed by npm.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Case, Contender, Role } from "../case.ts";
import type { Bundler } from "../peers/esbuild.ts";
import type { Peers } from "../peers/langgraph.ts";
import { createSdkModel } from "../peers/sdk-model.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";

type ColdPeers = Pick<Peers, "installed" | "langgraphEntry"> & Partial<Pick<Peers, "bundler">>;

/** Empty unless the packages of Statewright are installed. */
export function createColdRunCases(peers: ColdPeers): readonly Case[] {
  const own = peers.installed.find(({ main }) => main === "statewright");
  return own === undefined ? [] : [createColdRunCase(own.folder, peers), createColdAgentCase(own.folder, peers)];
}

function createColdRunCase(folder: string, { langgraphEntry, bundler }: ColdPeers): Case {
  const program = "cold-statewright";
  return {
    id: "B22",
    title: "fresh process, from its start to the end of a first saved run of one node",
    unit: "process",
    budget: { cpuUs: 125_000, text: "125 ms" },
    size: 1,
    contenders: [
      createContender("statewright", "ours", { program, folder }),
      createContender("statewright, with Node's compile cache", "ours", { program, folder, compileCache: true }),
      ...(bundler === undefined
        ? []
        : [
            createContender("statewright, bundled", "ours", { program, folder, bundler }),
            createContender("statewright, bundled, with Node's compile cache", "ours", {
              program,
              folder,
              bundler,
              compileCache: true,
            }),
          ]),
      ...(langgraphEntry === undefined
        ? []
        : [createContender("LangGraph.js", "peer", { program: "cold-langgraph", folder, entry: langgraphEntry })]),
      createContender("better-sqlite3, one transaction", "limit", { program: "cold-raw", folder }),
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.6 }],
  };
}

/** The agents of B14 in fresh processes. Statewright and the AI SDK have the same language model. */
function createColdAgentCase(folder: string, { installed }: ColdPeers): Case {
  const program = "statewright-agent";
  const peers = agentPeers.flatMap(({ name, main, program: peerProgram }) => {
    const peer = installed.find((each) => each.main === main);
    return peer === undefined
      ? []
      : [createContender(name, "peer", { program: peerProgram, folder: peer.folder, talk: "memory" })];
  });
  return {
    id: "B22 agent",
    title: "fresh process, from its start to the end of a first agent: a tool call and a final text, in memory",
    unit: "process",
    budget: { cpuUs: 150_000, text: "150 ms" },
    size: 1,
    contenders: [
      createContender("statewright", "ours", { program, folder, talk: "memory" }),
      createContender("statewright, with Node's compile cache", "ours", {
        program,
        folder,
        talk: "memory",
        compileCache: true,
      }),
      createContender("statewright, saved to SQLite", "ours", { program, folder, talk: "file" }),
      ...peers,
    ],
    checks: [
      // A regression limit: the AI SDK loads less code.
      { subject: "statewright", baseline: "AI SDK streamText", measure: "cpu", max: 1.6 },
      { subject: "statewright", baseline: "LangChain createAgent", measure: "cpu", max: 0.6 },
    ],
  };
}

const agentPeers = [
  { name: "AI SDK", main: "ai", program: "ai-sdk" },
  { name: "AI SDK streamText", main: "ai", program: "ai-sdk-stream" },
  { name: "pi-agent-core", main: "@earendil-works/pi-agent-core", program: "pi" },
  { name: "LangChain createAgent", main: "langchain", program: "langchain" },
] as const;

interface ColdProgram {
  /** File in `peers/programs`; its output ends with the CPU time of the process in microseconds. */
  readonly program: string;
  /** Folder from which the program imports packages. */
  readonly folder: string;
  /** URL of the module of a peer. */
  readonly entry?: string;
  /** Set for a program that exports `talk`: where its one conversation is saved. */
  readonly talk?: "memory" | "file";
  readonly compileCache?: boolean;
  /** Bundler that makes one file of the program and its packages, except better-sqlite3. */
  readonly bundler?: Bundler;
}

function createContender(
  name: string,
  role: Role,
  { program, folder, entry = "", talk, compileCache, bundler }: ColdProgram,
): Contender {
  const text = readFileSync(new URL(`../peers/programs/${program}.mjs.txt`, import.meta.url), "utf8");
  const source = talk === undefined ? text : `${text}\n${createTalk(talk)}`;
  return {
    name,
    role,
    ownProcesses: true,
    open: async () => {
      const cache = createScratchFile("cache");
      const env = compileCache === true ? { ...process.env, NODE_COMPILE_CACHE: cache.path } : process.env;
      const bundle = bundler && (await writeBundle(bundler, source, folder));
      const program = bundle === undefined ? source : `await import(${JSON.stringify(pathToFileURL(bundle).href)});`;
      return {
        run: async () => runProcess(program, { cwd: folder, entry, env }),
        close: () => {
          cache.remove();
          if (bundle !== undefined) rmSync(bundle);
          return undefined;
        },
      };
    },
  };
}

/** Writes the bundle of a program beside its packages, where it finds better-sqlite3. Returns its path. */
async function writeBundle(bundler: Bundler, contents: string, folder: string): Promise<string> {
  const built = await bundler.build({
    stdin: { contents, resolveDir: folder },
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "node",
    packages: "bundle",
    external: ["better-sqlite3"],
  });
  const path = join(folder, `bundle-${process.pid}-${bundles++}.mjs`);
  for (const { contents: bytes } of built.outputFiles) writeFileSync(path, bytes);
  return path;
}

let bundles = 0;

/** Creates the end of a program: one conversation of one tool call. The text of the model needs no module. */
function createTalk(place: "memory" | "file"): string {
  return `
const replies = await talk(1, ${place === "file" ? "process.argv[1]" : "undefined"}, ${createSdkModel.toString()});
if (replies < 2) throw new Error(\`expected at least 2 model calls, got \${replies}\`);
const cpuAtEnd = process.cpuUsage();
console.log(cpuAtEnd.user + cpuAtEnd.system);
process.exit(0);`;
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
