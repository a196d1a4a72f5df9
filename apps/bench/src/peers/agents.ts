/**
 * Agents of other frameworks. Each agent runs in its own process and measures itself, unaffected by modules of other
 * frameworks.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";
import { install, type Peer } from "./install.ts";

/** Installed agents that run, and one sentence about each framework. */
export interface AgentPeers {
  readonly inMemory: readonly AgentPeer[];
  /** Agents that save each step themselves. */
  readonly saved: readonly AgentPeer[];
  readonly notices: readonly string[];
  /** Installed frameworks, for programs that are only type-checked or imported. */
  readonly installed: readonly InstalledPeer[];
}

export interface InstalledPeer {
  readonly name: string;
  /** Package to import. */
  readonly main: string;
  readonly folder: string;
}

/** Agent of another framework. */
export interface AgentPeer {
  readonly name: string;
  readonly open: () => AgentProcess;
}

/** Process of an agent: `talk` runs a conversation of `turns` tool calls, in memory or saved to a file. */
export interface AgentProcess {
  readonly talk: (turns: number, file?: string) => Promise<Sample>;
  readonly close: () => Promise<undefined>;
}

type SaveTarget = "memory" | "file";

interface Framework {
  readonly name: string;
  /** Name of the saving variant, if the framework uses another component. */
  readonly savedAs?: string;
  /** Package whose version is reported. */
  readonly main: string;
  /** File in `programs`. Its `talk` runs a conversation of a given number of tool calls. */
  readonly program: string;
  readonly saveTargets: readonly SaveTarget[];
  readonly dependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
  /** True for another program of a listed framework, whose installation is measured once. */
  readonly isVariant?: true;
}

const langchain = {
  main: "langchain",
  program: "langchain.mjs",
  dependencies: {
    langchain: "1.5.14",
    "@langchain/langgraph": "1.4.18",
    "@langchain/core": "1.2.13",
    zod: "4.6.7",
  },
  overrides: { "@langchain/langgraph-sdk": "1.12.0" },
};

const frameworks: readonly Framework[] = [
  {
    name: "pi-agent-core",
    savedAs: "pi-agent-core AgentHarness with JSONL",
    main: "@earendil-works/pi-agent-core",
    program: "pi.mjs",
    saveTargets: ["memory", "file"],
    dependencies: { "@earendil-works/pi-agent-core": "0.87.1" },
  },
  {
    name: "AI SDK",
    main: "ai",
    program: "ai-sdk.mjs",
    saveTargets: ["memory"],
    dependencies: { ai: "7.0.173", zod: "4.6.7" },
  },
  {
    name: "AI SDK streamText",
    main: "ai",
    program: "ai-sdk-stream.mjs",
    saveTargets: ["memory"],
    dependencies: { ai: "7.0.173", zod: "4.6.7" },
    isVariant: true,
  },
  {
    name: "OpenAI Agents",
    main: "@openai/agents",
    program: "openai-agents.mjs",
    saveTargets: ["memory"],
    dependencies: { "@openai/agents": "0.20.0", zod: "4.6.7" },
  },
  { name: "LangChain createAgent", ...langchain, saveTargets: ["memory"] },
  {
    name: "LangChain createAgent with SQLite",
    ...langchain,
    saveTargets: ["file"],
    dependencies: { ...langchain.dependencies, "@langchain/langgraph-checkpoint-sqlite": "1.0.4" },
    overrides: { ...langchain.overrides, "better-sqlite3": "13.2.0" },
  },
  {
    name: "LangGraph.js 1.7.3",
    main: "@langchain/langgraph",
    program: "langgraph.mjs",
    saveTargets: ["memory", "file"],
    dependencies: {
      "@langchain/langgraph": "1.7.3",
      "@langchain/core": "1.4.0",
      "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
      zod: "4.6.7",
    },
    overrides: { "better-sqlite3": "13.2.0" },
  },
  {
    name: "Mastra",
    main: "@mastra/core",
    program: "mastra.mjs",
    saveTargets: ["memory"],
    dependencies: { "@mastra/core": "1.71.0", zod: "4.6.7" },
  },
  {
    name: "Mastra with LibSQL and recovery",
    main: "@mastra/core",
    program: "mastra.mjs",
    saveTargets: ["file"],
    dependencies: {
      "@mastra/core": "1.71.0",
      "@mastra/libsql": "1.23.1",
      "@mastra/memory": "1.31.0",
      zod: "4.6.7",
    },
  },
];

/**
 * Installs all frameworks, and runs a short conversation with each. A framework that does not install or run is
 * reported and left out.
 */
export async function loadAgentPeers(
  installPeer: typeof install = install,
  tryAgent: typeof findFault = findFault,
): Promise<AgentPeers> {
  const inMemory: AgentPeer[] = [];
  const saved: AgentPeer[] = [];
  const notices: string[] = [];
  const installed: InstalledPeer[] = [];
  for (const framework of frameworks) {
    const { name, savedAs = name, main, saveTargets: targets } = framework;
    const version = framework.dependencies[main] ?? "";
    const label = name.endsWith(version) ? name : `${name} ${version}`;
    const found = await installPeer(toPeer(framework, version));
    if (found.kind === "missing") {
      notices.push(`${label} is missing: ${found.reason}.`);
      continue;
    }
    notices.push(`${label}.`);
    if (framework.isVariant !== true) installed.push({ name, main, folder: found.folder });
    for (const place of targets) {
      const agentName = place === "file" ? savedAs : name;
      const agent: AgentPeer = { name: agentName, open: () => startAgent(agentName, found.entry) };
      const fault = await tryAgent(agent, place);
      if (fault !== undefined) notices.push(`${agentName} does not run: ${fault}.`);
      else if (place === "file") saved.push(agent);
      else inMemory.push(agent);
    }
  }
  return { inMemory, saved, notices, installed };
}

/** Runs two turns of an agent. Returns the error in one line, or undefined. */
async function findFault({ open }: AgentPeer, place: SaveTarget): Promise<string | undefined> {
  const { talk, close } = open();
  const file = createScratchFile("theirs.db");
  try {
    await talk(2, place === "file" ? file.path : undefined);
    return undefined;
  } catch (error) {
    return findErrorLine(error instanceof Error ? error.message : String(error));
  } finally {
    await close();
    file.remove();
  }
}

/** Finds the line that names the error, above its stack trace. */
function findErrorLine(output: string): string {
  const lines = output.split("\n").map((line) => line.trim());
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.findLast((line) => line !== "") ?? "";
}

function toPeer({ name, program, dependencies, overrides = {} }: Framework, version: string): Peer {
  const entry = readFileSync(new URL(`./programs/${program}.txt`, import.meta.url), "utf8");
  return { name: name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-"), version, dependencies, overrides, entry };
}

function startAgent(name: string, entry: string): AgentProcess {
  const child = fork(fileURLToPath(new URL("./talk-process.ts", import.meta.url)), [entry], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    execArgv: ["--no-warnings"],
  });
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors = `${errors}${text}`.slice(-2_000);
  });
  return {
    talk: (turns, file) =>
      sendRequest(child, { turns, file }, () => `${name}: expected a sample, but the process exited: ${errors}`),
    close: async () => {
      if (child.exitCode === null) {
        child.kill();
        await once(child, "exit");
      }
      return undefined;
    },
  };
}

function sendRequest(child: ChildProcess, request: object, describeExit: () => string): Promise<Sample> {
  return new Promise((resolve, reject) => {
    const rejectOnExit = (): void => reject(new Error(describeExit()));
    child.once("exit", rejectOnExit);
    child.once("message", (sample) => {
      child.off("exit", rejectOnExit);
      resolve(sample as Sample);
    });
    child.send(request);
  });
}
