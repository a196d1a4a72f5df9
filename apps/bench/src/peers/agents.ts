/** Agents of other frameworks: each in a process of its own, which measures itself, so that none pays for what another loads. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Sample } from "../measure.ts";
import { scratchFile } from "../scratch-files.ts";
import { install, type Peer } from "./install.ts";

/** Agents that were installed and that run, and one sentence for each framework. */
export interface AgentPeers {
  readonly inMemory: readonly AgentPeer[];
  /** Those that save each step themselves. */
  readonly saved: readonly AgentPeer[];
  readonly said: readonly string[];
  /** What lies where, for programs that are checked or imported and not run. */
  readonly installed: readonly InstalledPeer[];
}

export interface InstalledPeer {
  readonly name: string;
  /** The package to import. */
  readonly main: string;
  readonly folder: string;
}

/** An agent of another framework. */
export interface AgentPeer {
  readonly name: string;
  readonly open: () => AgentProcess;
}

/** Its process: an agent whose model calls a tool so many times, in memory or saved to a file. */
export interface AgentProcess {
  readonly talk: (turns: number, file?: string) => Promise<Sample>;
  readonly close: () => Promise<undefined>;
}

type Place = "memory" | "file";

interface Framework {
  readonly name: string;
  /** What it is called where it saves, if that is another part of it. */
  readonly savedAs?: string;
  /** The package whose version is told. */
  readonly main: string;
  /** A file in `programs` whose `talk` has a model call a tool so many times. */
  readonly program: string;
  readonly at: readonly Place[];
  readonly dependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
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
    at: ["memory", "file"],
    dependencies: { "@earendil-works/pi-agent-core": "0.87.1" },
  },
  {
    name: "AI SDK",
    main: "ai",
    program: "ai-sdk.mjs",
    at: ["memory"],
    dependencies: { ai: "7.0.173", zod: "4.6.7" },
  },
  {
    name: "OpenAI Agents",
    main: "@openai/agents",
    program: "openai-agents.mjs",
    at: ["memory"],
    dependencies: { "@openai/agents": "0.20.0", zod: "4.6.7" },
  },
  { name: "LangChain createAgent", ...langchain, at: ["memory"] },
  {
    name: "LangChain createAgent with SQLite",
    ...langchain,
    at: ["file"],
    dependencies: { ...langchain.dependencies, "@langchain/langgraph-checkpoint-sqlite": "1.0.4" },
    overrides: { ...langchain.overrides, "better-sqlite3": "13.2.0" },
  },
  {
    name: "LangGraph.js 1.7.3",
    main: "@langchain/langgraph",
    program: "langgraph.mjs",
    at: ["memory", "file"],
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
    at: ["memory"],
    dependencies: { "@mastra/core": "1.71.0", zod: "4.6.7" },
  },
  {
    name: "Mastra with LibSQL and recovery",
    main: "@mastra/core",
    program: "mastra.mjs",
    at: ["file"],
    dependencies: {
      "@mastra/core": "1.71.0",
      "@mastra/libsql": "1.23.1",
      "@mastra/memory": "1.31.0",
      zod: "4.6.7",
    },
  },
];

/** Install them, and have each talk once; one that does not install or does not run is told and left out. */
export async function loadAgentPeers(
  installing: typeof install = install,
  trying: typeof tryOut = tryOut,
): Promise<AgentPeers> {
  const inMemory: AgentPeer[] = [];
  const saved: AgentPeer[] = [];
  const said: string[] = [];
  const installed: InstalledPeer[] = [];
  for (const framework of frameworks) {
    const { name, savedAs = name, main, at } = framework;
    const version = framework.dependencies[main] ?? "";
    const named = name.endsWith(version) ? name : `${name} ${version}`;
    const found = await installing(asPeer(framework, version));
    if (found.kind === "missing") {
      said.push(`${named} is missing: ${found.why}.`);
      continue;
    }
    said.push(`${named}.`);
    installed.push({ name, main, folder: found.folder });
    for (const place of at) {
      const called = place === "file" ? savedAs : name;
      const agent: AgentPeer = { name: called, open: () => startAgent(called, found.entry) };
      const fault = await trying(agent, place);
      if (fault !== undefined) said.push(`${called} does not run: ${fault}.`);
      else if (place === "file") saved.push(agent);
      else inMemory.push(agent);
    }
  }
  return { inMemory, saved, said, installed };
}

/** Why two turns of it fail, in one line. */
async function tryOut({ open }: AgentPeer, place: Place): Promise<string | undefined> {
  const { talk, close } = open();
  const file = scratchFile("theirs.db");
  try {
    await talk(2, place === "file" ? file.path : undefined);
    return undefined;
  } catch (error) {
    return firstError(error instanceof Error ? error.message : String(error));
  } finally {
    await close();
    file.remove();
  }
}

/** The line of what a process said at its end that names the error, before where it was thrown. */
function firstError(said: string): string {
  const lines = said.split("\n").map((line) => line.trim());
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.findLast((line) => line !== "") ?? "";
}

function asPeer({ name, program, dependencies, overrides = {} }: Framework, version: string): Peer {
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
    talk: (turns, file) => asked(child, { turns, file }, () => `${name} did not answer: ${errors}`),
    close: async () => {
      if (child.exitCode === null) {
        child.kill();
        await once(child, "exit");
      }
      return undefined;
    },
  };
}

function asked(child: ChildProcess, question: object, why: () => string): Promise<Sample> {
  return new Promise((resolve, reject) => {
    const died = (): void => reject(new Error(why()));
    child.once("exit", died);
    child.once("message", (sample) => {
      child.off("exit", died);
      resolve(sample as Sample);
    });
    child.send(question);
  });
}
