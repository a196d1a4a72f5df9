/** LangGraph.js: the same work in its own terms, with its own SQLite checkpointer. */
import type { AgentPeers, InstalledPeer } from "./agents.ts";
import type { Bundler } from "./esbuild.ts";
import { install, type Peer } from "./install.ts";

interface Release {
  readonly core: string;
  /** Versions that its own ranges do not find without an install script, or not at all. */
  readonly overrides: Readonly<Record<string, string>>;
}

const sqlite = { "better-sqlite3": "13.2.0" };

/** The release that is measured where none is asked for. */
export const usualRelease = "1.4.18";

/** What goes with a release; others take the newest core. */
const releases: Readonly<Record<string, Release>> = {
  // The newest SDK in its range asks for a package that is not published.
  [usualRelease]: { core: "1.2.13", overrides: { "@langchain/langgraph-sdk": "1.12.0", ...sqlite } },
  "1.7.3": { core: "1.4.0", overrides: sqlite },
};

function peerOf(version: string): Peer {
  const { core, overrides } = releases[version] ?? { core: "latest", overrides: sqlite };
  return {
    name: "langgraph",
    version,
    dependencies: {
      "@langchain/langgraph": version,
      "@langchain/core": core,
      "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
      zod: "4.6.7",
    },
    overrides,
    entry: [
      'export * from "@langchain/langgraph";',
      'export { ToolNode } from "@langchain/langgraph/prebuilt";',
      'export { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";',
      'export { AIMessage, HumanMessage } from "@langchain/core/messages";',
      'export { tool } from "@langchain/core/tools";',
    ].join("\n"),
  };
}

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
  readonly interrupt: (question: unknown) => unknown;
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
  readonly agents: AgentPeers;
  /** What is installed and was not loaded into this process, ours and theirs. */
  readonly installed: readonly InstalledPeer[];
  /** What weighs bundles. */
  readonly bundler: Bundler | undefined;
  /** One sentence for each peer. */
  readonly said: readonly string[];
}

export const noAgents: AgentPeers = { inMemory: [], saved: [], said: [], installed: [] };

export const noPeers: Peers = {
  langgraph: undefined,
  langgraphEntry: undefined,
  agents: noAgents,
  installed: [],
  bundler: undefined,
  said: ["Peers were left out."],
};

/** Install and load LangGraph.js, of the release that is asked for. Agents of other frameworks are handed on. */
export async function loadPeers(
  agents: AgentPeers = noAgents,
  version: string = usualRelease,
  installing: typeof install = install,
): Promise<Peers> {
  const peer = peerOf(version);
  const named = `LangGraph.js ${version}`;
  const found = await installing(peer);
  if (found.kind === "missing") {
    const said = [`${named} is missing: ${found.why}.`, ...agents.said];
    return { ...noPeers, agents, installed: agents.installed, said };
  }
  const langgraph = (await import(found.entry)) as LangGraph;
  const pinned = Object.entries({ ...peer.dependencies, ...peer.overrides }).filter(([name]) => name.includes("-"));
  const list = pinned.map(([name, pin]) => `${name} ${pin}`).join(", ");
  const main = { name: "LangGraph.js with SQLite", main: "@langchain/langgraph", folder: found.folder };
  return {
    langgraph,
    langgraphEntry: found.entry,
    agents,
    installed: [main, ...agents.installed],
    bundler: undefined,
    said: [`${named} (@langchain/core ${peer.dependencies["@langchain/core"]}, ${list}).`, ...agents.said],
  };
}
