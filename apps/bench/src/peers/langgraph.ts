/** LangGraph.js peer: the same work with its own API and its own SQLite checkpointer. */
import type { AgentPeers, InstalledPeer } from "./agents.ts";
import type { Bundler } from "./esbuild.ts";
import { install, type Peer } from "./install.ts";
import type { ServerPeer } from "./servers.ts";

interface Release {
  readonly core: string;
  /** Versions that the release's own ranges resolve only with an install script, or not at all. */
  readonly overrides: Readonly<Record<string, string>>;
}

const sqlite = { "better-sqlite3": "13.2.0" };

/** Default release of LangGraph.js. */
export const defaultRelease = "1.4.18";

/** Companion versions of a release; other releases use the latest core. */
const releases: Readonly<Record<string, Release>> = {
  // The newest SDK in the range depends on an unpublished package.
  [defaultRelease]: { core: "1.2.13", overrides: { "@langchain/langgraph-sdk": "1.12.0", ...sqlite } },
  "1.7.3": { core: "1.4.0", overrides: sqlite },
};

function createPeer(version: string): Peer {
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

/** Compiled LangGraph.js graph. */
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

/** SQLite checkpointer of LangGraph.js, over better-sqlite3. */
export interface PeerSaver {
  readonly db: { pragma(text: string): unknown; close(): void };
}

interface Annotation {
  (options?: object): unknown;
  Root(shape: Readonly<Record<string, unknown>>): unknown;
}

/** Part of LangGraph.js used by the cases. */
export interface LangGraph {
  readonly StateGraph: new (state: unknown) => Builder;
  readonly Annotation: Annotation;
  readonly MessagesAnnotation: unknown;
  readonly interrupt: (question: unknown) => unknown;
  readonly Command: new (update: { readonly resume: unknown }) => object;
  readonly Send: new (node: string, input: unknown) => unknown;
  readonly ToolNode: new (tools: readonly unknown[]) => unknown;
  readonly SqliteSaver: { fromConnString(path: string): PeerSaver };
  readonly AIMessage: new (fields: object) => unknown;
  readonly HumanMessage: new (text: string) => unknown;
  readonly tool: (body: (args: never) => unknown, options: object) => unknown;
}

/** Loaded and installed peers. */
export interface Peers {
  readonly langgraph: LangGraph | undefined;
  /** URL of the LangGraph.js module, for imports in other processes. */
  readonly langgraphEntry: string | undefined;
  /** Agents of other frameworks. */
  readonly agents: AgentPeers;
  /** Servers of other frameworks. */
  readonly servers: readonly ServerPeer[];
  /** Installed packages that are not loaded into this process, Statewright's and those of peers. */
  readonly installed: readonly InstalledPeer[];
  /** Bundler for the measurement of bundle sizes. */
  readonly bundler: Bundler | undefined;
  /** One sentence about each peer. */
  readonly notices: readonly string[];
}

export const noAgents: AgentPeers = { inMemory: [], saved: [], notices: [], installed: [] };

export const noPeers: Peers = {
  langgraph: undefined,
  langgraphEntry: undefined,
  agents: noAgents,
  servers: [],
  installed: [],
  bundler: undefined,
  notices: ["Peers are excluded."],
};

/** Installs and loads LangGraph.js in the given release. Adds the given agents of other frameworks. */
export async function loadPeers(
  agents: AgentPeers = noAgents,
  version: string = defaultRelease,
  installPeer: typeof install = install,
): Promise<Peers> {
  const peer = createPeer(version);
  const label = `LangGraph.js ${version}`;
  const found = await installPeer(peer);
  if (found.kind === "missing") {
    const notices = [`${label} is missing: ${found.reason}.`, ...agents.notices];
    return { ...noPeers, agents, installed: agents.installed, notices };
  }
  const langgraph = (await import(found.entry)) as LangGraph;
  const pinned = Object.entries({ ...peer.dependencies, ...peer.overrides }).filter(([name]) => name.includes("-"));
  const list = pinned.map(([name, pin]) => `${name} ${pin}`).join(", ");
  const main = { name: "LangGraph.js with SQLite", main: "@langchain/langgraph", folder: found.folder };
  return {
    langgraph,
    langgraphEntry: found.entry,
    agents,
    servers: [],
    installed: [main, ...agents.installed],
    bundler: undefined,
    notices: [`${label} (@langchain/core ${peer.dependencies["@langchain/core"]}, ${list}).`, ...agents.notices],
  };
}
