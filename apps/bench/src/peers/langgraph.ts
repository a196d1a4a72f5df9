/** LangGraph.js: the same work in its own terms, with its own SQLite checkpointer. */
import type { Contender } from "../case.ts";
import type { AgentPeers } from "./agents.ts";
import { type Bundler, loadBundler } from "./esbuild.ts";
import { install, type Peer } from "./install.ts";

const peer: Peer = {
  name: "langgraph",
  version: "1.4.18",
  dependencies: {
    "@langchain/langgraph": "1.4.18",
    "@langchain/core": "1.2.13",
    "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
    zod: "4.6.7",
  },
  // The newest SDK in its range asks for a package that is not published; the binding in its range needs an install script.
  overrides: { "@langchain/langgraph-sdk": "1.12.0", "better-sqlite3": "13.2.0" },
  entry: [
    'export * from "@langchain/langgraph";',
    'export { ToolNode } from "@langchain/langgraph/prebuilt";',
    'export { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";',
    'export { AIMessage, HumanMessage } from "@langchain/core/messages";',
    'export { tool } from "@langchain/core/tools";',
  ].join("\n"),
};

/** A graph of theirs, ready to run. */
export interface PeerGraph {
  invoke(input: object, config?: object): Promise<Record<string, unknown>>;
  getState(config: object): Promise<unknown>;
  getStateHistory(config: object, options: { readonly limit: number }): AsyncIterable<unknown>;
}

interface Builder {
  addNode(name: string, body: unknown): Builder;
  addEdge(from: string, to: string): Builder;
  addConditionalEdges(from: string, choose: (state: never) => unknown, targets?: readonly string[]): Builder;
  compile(options?: { readonly checkpointer?: PeerSaver | undefined }): PeerGraph;
}

/** Their checkpointer over better-sqlite3. */
export interface PeerSaver {
  readonly db: { pragma(text: string): unknown; close(): void };
}

interface Annotation {
  (options?: object): unknown;
  Root(shape: Readonly<Record<string, unknown>>): unknown;
}

/** What the cases use of LangGraph.js. */
export interface LangGraph {
  readonly StateGraph: new (state: unknown) => Builder;
  readonly Annotation: Annotation;
  readonly MessagesAnnotation: unknown;
  readonly Send: new (node: string, input: unknown) => unknown;
  readonly ToolNode: new (tools: readonly unknown[]) => unknown;
  readonly SqliteSaver: { fromConnString(path: string): PeerSaver };
  readonly AIMessage: new (fields: object) => unknown;
  readonly HumanMessage: new (text: string) => unknown;
  readonly tool: (body: (args: never) => unknown, options: object) => unknown;
}

/** What became of the peer, and where it lies. */
export interface Peers {
  readonly langgraph: LangGraph | undefined;
  /** The module to import in a process of its own. */
  readonly langgraphEntry: string | undefined;
  /** Agents of other frameworks. */
  readonly agents: readonly Contender[];
  /** Where LangChain lies, for programs that are checked and not run. */
  readonly langchainFolder: string | undefined;
  /** What weighs bundles. */
  readonly bundler: Bundler | undefined;
  /** One sentence for each peer. */
  readonly said: readonly string[];
}

export const noPeers: Peers = {
  langgraph: undefined,
  langgraphEntry: undefined,
  agents: [],
  langchainFolder: undefined,
  bundler: undefined,
  said: ["Peers were left out."],
};

export const noAgents: AgentPeers = { contenders: [], said: [], langchainFolder: undefined };

/** Install and load the peers. Agents of other frameworks are handed on. */
export async function loadPeers({ contenders: agents, said, langchainFolder }: AgentPeers = noAgents): Promise<Peers> {
  const named = `LangGraph.js ${peer.version}`;
  const bundler = await loadBundler();
  const installed = await install(peer);
  if (installed.kind === "missing")
    return {
      langgraph: undefined,
      langgraphEntry: undefined,
      agents,
      langchainFolder,
      bundler,
      said: [`${named} is missing: ${installed.why}.`, ...said],
    };
  const langgraph = (await import(installed.entry)) as LangGraph;
  const pinned = Object.entries({ ...peer.dependencies, ...peer.overrides }).filter(([name]) => name.includes("-"));
  const list = pinned.map(([name, version]) => `${name} ${version}`).join(", ");
  return {
    langgraph,
    langgraphEntry: installed.entry,
    agents,
    langchainFolder,
    bundler,
    said: [`${named} (@langchain/core ${peer.dependencies["@langchain/core"]}, ${list}).`, ...said],
  };
}
