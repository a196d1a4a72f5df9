/** Agents of other frameworks: each in a process of its own, which measures itself, so that none pays for what another loads. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Contender, Work } from "../case.ts";
import type { Sample } from "../measure.ts";
import { install, type Peer } from "./install.ts";

/** Agents that were installed, and one sentence for each framework. */
export interface AgentPeers {
  readonly contenders: readonly Contender[];
  readonly said: readonly string[];
  /** Where LangChain lies, for programs that are checked and not run. */
  readonly langchainFolder: string | undefined;
}

interface AgentPeer {
  readonly name: string;
  /** The package whose version is told. */
  readonly main: string;
  /** A file in `programs` whose `talk` has a model call a tool so many times. */
  readonly program: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
}

const agents: readonly AgentPeer[] = [
  {
    name: "pi-agent-core",
    main: "@earendil-works/pi-agent-core",
    program: "pi.mjs",
    dependencies: { "@earendil-works/pi-agent-core": "0.87.1" },
  },
  { name: "AI SDK", main: "ai", program: "ai-sdk.mjs", dependencies: { ai: "7.0.173", zod: "4.6.7" } },
  {
    name: "OpenAI Agents",
    main: "@openai/agents",
    program: "openai-agents.mjs",
    dependencies: { "@openai/agents": "0.20.0", zod: "4.6.7" },
  },
  {
    name: "LangChain createAgent",
    main: "langchain",
    program: "langchain.mjs",
    dependencies: {
      langchain: "1.5.14",
      "@langchain/langgraph": "1.4.18",
      "@langchain/core": "1.2.13",
      zod: "4.6.7",
    },
    overrides: { "@langchain/langgraph-sdk": "1.12.0" },
  },
  {
    name: "Mastra",
    main: "@mastra/core",
    program: "mastra.mjs",
    dependencies: { "@mastra/core": "1.71.0", zod: "4.6.7" },
  },
];

/** Install them; one that does not install is told and left out. */
export async function loadAgentPeers(): Promise<AgentPeers> {
  const contenders: Contender[] = [];
  const said: string[] = [];
  let langchainFolder: string | undefined;
  for (const agent of agents) {
    const version = agent.dependencies[agent.main] ?? "";
    const installed = await install(asPeer(agent, version));
    if (installed.kind === "missing") {
      said.push(`${agent.name} ${version} is missing: ${installed.why}.`);
      continue;
    }
    said.push(`${agent.name} ${version}.`);
    if (agent.main === "langchain") langchainFolder = installed.folder;
    contenders.push({ name: agent.name, role: "peer", size: 100, open: () => talking(agent.name, installed.entry) });
  }
  return { contenders, said, langchainFolder };
}

function asPeer({ name, program, dependencies, overrides = {} }: AgentPeer, version: string): Peer {
  const entry = readFileSync(new URL(`./programs/${program}.txt`, import.meta.url), "utf8");
  return { name: name.toLowerCase().replaceAll(" ", "-"), version, dependencies, overrides, entry };
}

async function talking(name: string, entry: string): Promise<Work> {
  const child = fork(fileURLToPath(new URL("./talk-process.ts", import.meta.url)), [entry], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    execArgv: ["--no-warnings"],
  });
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors = `${errors}${text}`.slice(-2_000);
  });
  return {
    run: (size) => asked(child, size, () => `${name} did not answer: ${errors}`),
    close: async () => {
      if (child.exitCode === null) {
        child.kill();
        await once(child, "exit");
      }
      return undefined;
    },
  };
}

function asked(child: ChildProcess, size: number, why: () => string): Promise<Sample> {
  return new Promise((resolve, reject) => {
    const died = (): void => reject(new Error(why()));
    child.once("exit", died);
    child.once("message", (sample) => {
      child.off("exit", died);
      resolve(sample as Sample);
    });
    child.send(size);
  });
}
